"""What the API server asks of a node, answered as a kubelet does: logs, exec, attach, port-forward, statistics."""
