"""InferenceGraphs: a router in front of several services, run by Knative or as a plain Deployment."""
