"""`batkube serve`: a cluster behind a real API server, in real time, until somebody ends it."""
