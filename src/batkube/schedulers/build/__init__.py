"""Builds of programs: Go toolchains, compilation, the build cache."""
