"""Pod scheduling: filter, score, bind and preempt single pods, as kube-scheduler does."""
