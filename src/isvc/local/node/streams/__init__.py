"""What `kubectl exec`, `attach`, `cp` and `port-forward` speak with a node: byte streams, many on one connection."""
