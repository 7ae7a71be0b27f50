"""Which nodes belong to which groups: worked out once for all caches, and again when a node or a group changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from isvc.api.codec import DecodeError
from isvc.api.completion import read_other
from isvc.api.localmodel import LocalModelNodeGroup, LocalModelNodeGroupSpec
from isvc.api.resources import LOCAL_MODEL_NODE_GROUPS
from isvc.kube.conditions import condition_of
from isvc.kube.node_selectors import is_node_ready, selects
from isvc.kube.objects import Object, dig, labels_of, name_of
from isvc.kube.readiness import READY
from isvc.kube.resource import NODES
from isvc.toolkit.cache import Reader


@dataclass(frozen=True, slots=True)
class Group:
    """A group of nodes: its disks, and for each of its nodes whether it is ready."""

    spec: LocalModelNodeGroupSpec
    nodes: Mapping[str, bool]


class NodeGroups:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._editions: tuple[int, ...] = ()
        self._groups: dict[str, Group | DecodeError] = {}

    def get(self, name: str) -> Group | None:
        """Returns a group, or None if there is none of that name; raises `DecodeError` for one that cannot be read."""
        editions = (self._reader.edition(NODES), self._reader.edition(LOCAL_MODEL_NODE_GROUPS))
        if editions != self._editions:
            nodes = self._reader.list(NODES)
            groups = self._reader.list(LOCAL_MODEL_NODE_GROUPS)
            self._groups = {name_of(group): _read_group(group, nodes) for group in groups}
            self._editions = editions
        found = self._groups.get(name)
        if isinstance(found, DecodeError):
            raise found
        return found


def _read_group(raw: Object, nodes: list[Object]) -> Group | DecodeError:
    """A group whose volume has no node affinity has no nodes, as in KServe: nothing says where its disks are."""
    try:
        spec = read_other(LocalModelNodeGroup, raw).spec
    except DecodeError as error:
        return error
    selector = dig(spec.persistent_volume_spec, "nodeAffinity", "required") or {}
    return Group(spec, {name_of(node): is_node_ready(node) for node in nodes if selects(selector, node)})


def reduce_node(node: Object) -> Object:
    """Returns what membership depends on: a kubelet reports much more of its node, and often."""
    ready = {"type": READY, "status": condition_of(node, READY).get("status")}
    metadata = node["metadata"]
    kept = {key: metadata[key] for key in ("name", "uid", "resourceVersion", "labels") if key in metadata}
    return {"metadata": kept, "status": {"conditions": [ready]}}


def membership(node: Object) -> tuple[object, ...]:
    """Returns what of a node decides which groups have it, and whether they can use it."""
    return is_node_ready(node), labels_of(node)
