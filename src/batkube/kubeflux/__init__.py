"""KubeFlux: a scheduler that matches pods on a graph of the cluster, and keeps that graph in sync."""
