"""A graph as the controller hands it to the router: the InferenceGraph's spec, with the URL of every service."""

from __future__ import annotations

import msgspec

ROOT = "root"
RESPONSE = "$response"  # a step's data: what the step before it answered


class Step(msgspec.Struct, frozen=True, rename="camel"):
    step_name: str = msgspec.field(name="name", default="")
    node_name: str = ""
    service_url: str = msgspec.field(name="serviceUrl", default="")
    data: str = ""
    weight: int = 0
    condition: str = ""
    dependency: str = ""
    map_predictions_to_instances: bool = False
    # KServe's router takes no notice of these.
    append_request_path: bool = False
    timeout_seconds: float | None = None
    retries: int = 0

    @property
    def is_hard(self) -> bool:
        """Returns whether the answer of the node is this step's where it fails."""
        return self.dependency == "Hard"


class Node(msgspec.Struct, frozen=True, rename="camel"):
    router_type: str = ""
    steps: list[Step] = []

    @property
    def named_steps(self) -> list[tuple[str, Step]]:
        """Steps by their names; one without a name has its number, as in the answer of an ensemble."""
        return [(step.step_name or str(index), step) for index, step in enumerate(self.steps)]


class Timeouts(msgspec.Struct, frozen=True, rename="camel"):
    """In seconds."""

    server_read: float = 60
    server_write: float = 60
    server_idle: float = 180
    service_client: float | None = None


class Graph(msgspec.Struct, frozen=True, rename="camel"):
    nodes: dict[str, Node] = {}
    router_timeouts: Timeouts = msgspec.field(default_factory=Timeouts)


def decode(text: str) -> Graph:
    """Raises msgspec.ValidationError or DecodeError with where and why."""
    return msgspec.json.decode(text, type=Graph)
