"""A component as plain Kubernetes: a Deployment, its Service and whatever scales it.

InferenceServices and InferenceGraphs build their components differently and deploy them the same way, from here.
Everything is a pure function from a `Component` and the configuration to manifests.
"""
