"""What the webhook adds to a pod that serves a model: the model, its credentials, the agent, metrics settings."""

from __future__ import annotations

from isvc.serving.pods.mutate import PodFacts, is_ours, mutate_pod

__all__ = ["PodFacts", "is_ours", "mutate_pod"]
