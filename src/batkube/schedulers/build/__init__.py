"""Builds of schedulers: Go toolchains, compilation, the cache of built programs."""
