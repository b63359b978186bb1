"""HTTP/1.1 and TLS on one connection, independent of how bytes are transported."""
