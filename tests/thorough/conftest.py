"""The same `isvc up` for each worker as the daily suites have, and the same nodes that keep models."""

from __future__ import annotations

from tests.cluster.conftest import make_node, web
from tests.up.conftest import _tools, here, laptop

__all__ = ["_tools", "here", "laptop", "make_node", "web"]
