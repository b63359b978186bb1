"""Built-in admission plugins: those that kube-apiserver enables by default."""
