"""HorizontalPodAutoscalers: metrics, replica calculation, scaling limits."""
