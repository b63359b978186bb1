"""The described hardware: machines read from SimGrid platforms, Node manifests, openb, or a shorthand."""
