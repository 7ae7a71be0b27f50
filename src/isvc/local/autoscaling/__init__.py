"""Replicas that follow what pods use: the HorizontalPodAutoscaler, as kube-controller-manager runs it."""
