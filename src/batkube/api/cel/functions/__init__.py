"""Functions: operators, conversions and the function libraries of CEL and Kubernetes."""
