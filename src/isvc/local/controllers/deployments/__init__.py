"""Deployments: ReplicaSets that are rolled out and scaled, and what their status says of it."""
