"""The life of a container in a pod: how it is started, probed and started again, and what `kubectl exec` does in it."""
