"""A set of field paths, kept in the form in which managedFields carries it (`fieldsV1`).

    {"f:spec": {"f:replicas": {}, "f:ports": {".": {}, 'k:{"port":80}': {".": {}, "f:name": {}}}}}

A node without entries is a member of the set. A node with entries is one only if it has a "." among them. The
elements of a path are `f:<field>`, `k:<keys of a list item>` and `v:<value in a set>`. Nodes are never modified.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import orjson

Node: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]

_SELF: Final = "."
LEAF: Final[Node] = {}


@dataclass(frozen=True, slots=True)
class FieldSet:
    node: Node = field(default_factory=dict)

    @classmethod
    def parse(cls, fields_v1: Node | None) -> FieldSet:
        return cls({key: value for key, value in (fields_v1 or {}).items() if key != _SELF})

    def fields_v1(self) -> Node:
        return self.node

    def __bool__(self) -> bool:
        return bool(self.node)

    def __or__(self, other: FieldSet) -> FieldSet:
        if not self.node or not other.node:
            return self if self.node else other
        return FieldSet(_union(self.node, other.node))

    def __sub__(self, other: FieldSet) -> FieldSet:
        return FieldSet(_difference(self.node, other.node)) if other.node else self

    def __and__(self, other: FieldSet) -> FieldSet:
        return FieldSet(_intersection(self.node, other.node))

    def __contains__(self, path: Path) -> bool:
        node = self.node
        for element in path:
            if element not in node:
                return False
            node = node[element]
        return bool(path) and is_member(node)

    def without(self, names: tuple[str, ...]) -> FieldSet:
        """Returns the set without these fields of the object and all that is in them."""
        return FieldSet({key: value for key, value in self.node.items() if key[2:] not in names}) if names else self

    def paths(self) -> Iterator[Path]:
        return _paths(self.node, ())


def is_member(node: Node) -> bool:
    return not node or _SELF in node


def branch(children: Node, *, member: bool) -> Node:
    """Returns a node with children, which may be in the set itself."""
    return {_SELF: LEAF, **children} if member and children else children


def path_text(path: Path) -> str:
    """`.spec.containers[name="a"].image`, as the API server prints it."""
    return "".join(_element_text(element) for element in path)


def _element_text(element: str) -> str:
    kind, content = element[0], element[2:]
    if kind == "f":
        return f".{content}"
    if kind == "k":
        keys = orjson.loads(content)
        return "[" + ",".join(f"{name}={orjson.dumps(value).decode()}" for name, value in keys.items()) + "]"
    return f"[={content}]" if kind == "v" else f"[{content}]"


def _union(one: Node, other: Node) -> Node:
    if one is other:
        return one
    result = dict(one)
    for key, theirs in other.items():
        mine = one.get(key)
        if mine is None or mine == theirs:
            result[key] = theirs
        elif not mine or not theirs:
            whole = mine or theirs
            result[key] = whole if _SELF in whole else {_SELF: LEAF, **whole}
        else:
            result[key] = _union(mine, theirs)
    return result


def _difference(one: Node, other: Node) -> Node:
    result: Node = {}
    for key, mine in one.items():
        theirs = other.get(key)
        if theirs is None:
            result[key] = mine
        elif key != _SELF:
            _put(result, key, is_member(mine) and not is_member(theirs), _difference(_children(mine), theirs))
    return result


def _intersection(one: Node, other: Node) -> Node:
    result: Node = {}
    for key, mine in one.items():
        theirs = other.get(key)
        if theirs is not None and key != _SELF:
            member = is_member(mine) and is_member(theirs)
            _put(result, key, member, _intersection(mine, theirs))
    return result


def _children(node: Node) -> Node:
    return {key: value for key, value in node.items() if key != _SELF} if _SELF in node else node


def _put(result: Node, key: str, member: bool, children: Node) -> None:
    if member or children:
        result[key] = branch(children, member=member)


def _paths(node: Node, prefix: Path) -> Iterator[Path]:
    for key in sorted(node):
        if key != _SELF:
            path = (*prefix, key)
            if is_member(node[key]):
                yield path
            yield from _paths(node[key], path)
