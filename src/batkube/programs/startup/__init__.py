"""Startup of external programs: command line, environment, credentials, API access."""
