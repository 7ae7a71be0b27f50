"""HTTP/1.1 without Kubernetes: the serving side, for the embedded API server and the webhooks, and a client."""
