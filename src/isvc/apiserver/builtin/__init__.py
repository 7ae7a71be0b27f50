"""Kubernetes' own kinds: what a body of each becomes, what is filled in, and what is refused."""

from __future__ import annotations

from isvc.apiserver.builtin.strategies import strategy_of

__all__ = ["strategy_of"]
