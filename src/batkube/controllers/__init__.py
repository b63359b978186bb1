"""The controllers of the cluster: Jobs, ReplicaSets, Deployments, garbage collection and others.

Each controller subscribes to changes in the store. A moment after a change it reconciles the whole object
("level-triggered"), as in kube-controller-manager. Controllers write through a `cluster.client.Client`, like any
other client of the API.
"""
