"""The nodes that keep models of the suites on both API servers."""

from __future__ import annotations

from tests.cluster.conftest import make_node, web

__all__ = ["make_node", "web"]
