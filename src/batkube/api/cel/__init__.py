"""A small interpreter of CEL, the Common Expression Language in which schemas write their rules.

Text becomes tokens (`lexing`), tokens a tree (`parsing`), the tree is checked against the types of the variables as far
as they are known (`checking`), and becomes Python functions (`evaluating`). The language is that of Kubernetes 1.34:
CEL with the string, list, regex, set, quantity, IP, CIDR and URL libraries. What is not understood is `Unsupported`,
for the caller to tell of; it is never taken for true or false.
"""
