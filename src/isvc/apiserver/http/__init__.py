"""HTTP/1.1 over TLS, no more of it than Kubernetes clients use."""
