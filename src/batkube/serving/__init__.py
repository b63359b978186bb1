"""`batkube serve`: a simulated cluster behind a real API server, in real time, until it is shut down."""
