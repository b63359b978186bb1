"""Syntax: lexer, parser and syntax tree of CEL expressions."""
