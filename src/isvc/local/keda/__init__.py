"""KEDA's ScaledObjects: a HorizontalPodAutoscaler for one replica and more, and the steps from none to one and back."""
