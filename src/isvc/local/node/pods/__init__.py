"""The life of a pod on this node: bound, started, reported to the API server, and ended."""
