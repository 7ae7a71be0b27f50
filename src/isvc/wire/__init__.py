"""Bytes on connections: HTTP/1.1 and HTTP/2, each with a server and a client. Knows nothing of Kubernetes."""
