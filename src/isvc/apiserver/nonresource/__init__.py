"""What the server answers besides resources, on Kubernetes' non-resource URLs: discovery, OpenAPI, metrics."""
