"""KubeFlux: a scheduler that matches pods on a graph of the cluster, and how its picture of the cluster stays true."""
