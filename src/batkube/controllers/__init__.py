"""What a cluster's controllers do: Jobs, ReplicaSets, Deployments, garbage collection, and their like.

Each controller watches the store and, a moment after something it cares about changed, looks at the whole object again
and does what is missing ("level-triggered"; Kubernetes: kube-controller-manager). They write through a
`cluster.client.Client`, as any other user of the API.
"""
