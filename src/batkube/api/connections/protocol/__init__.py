"""HTTP/1.1 and TLS on one connection, independent of who moves the bytes."""
