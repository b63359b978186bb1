"""Run Batkube's schedulers against a remote cluster: they decide on a mirror of it, and write over HTTP."""
