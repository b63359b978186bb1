"""The described hardware: machines and networks from SimGrid files, Node manifests, openb lists, or a shorthand."""
