"""An interpreter of CEL (Common Expression Language), in which schemas and policies write their rules.

Text is split into tokens (`syntax.lexer`) and parsed to a tree (`syntax.parser`). The tree is checked against the types
of its variables (`checker`) and compiled to Python functions (`evaluation.compiler`). The language is that of
Kubernetes 1.34: CEL with the string, list, regex, set, quantity, IP, CIDR and URL libraries. Unsupported expressions
raise `Unsupported`, which callers must report; they are never taken for true or false.
"""
