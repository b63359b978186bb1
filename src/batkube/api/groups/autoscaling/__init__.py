"""HorizontalPodAutoscalers, in two versions, and Scales."""
