"""The one place that talks to Kubernetes: verbs on resources in, plain objects out."""

from isvc.toolkit.client.client import Client, PatchKind

__all__ = ["Client", "PatchKind"]
