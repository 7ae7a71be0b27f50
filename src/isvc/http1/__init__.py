"""The serving side of HTTP/1.1, for the embedded API server and the webhooks; knows nothing of Kubernetes."""
