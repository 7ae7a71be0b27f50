"""Bytes: HTTP/1.1, with a server and a client, certificates, and what programs run on. Knows nothing of Kubernetes."""
