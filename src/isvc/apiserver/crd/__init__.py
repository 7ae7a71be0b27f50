"""Kinds that users bring: a CustomResourceDefinition becomes a strategy per served version."""

from __future__ import annotations

from isvc.apiserver.crd.descriptions import descriptions

__all__ = ["descriptions"]
