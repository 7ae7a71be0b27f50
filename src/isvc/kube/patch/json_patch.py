"""JSON patch (RFC 6902): a list of operations on paths. Admission webhooks answer in it."""

from __future__ import annotations

from typing import Any

import orjson

from isvc.kube.objects import Object
from isvc.kube.patch import PatchError
from isvc.kube.patch.merge_patch import same

MAX_COPIED = 3 << 20  # bytes; a few dozen operations that copy a value into itself would fill the memory


def apply(doc: Any, ops: list[Object]) -> Any:
    if not isinstance(ops, list):
        raise PatchError("a JSON patch is a list of operations")
    doc, copied = orjson.loads(_encode(doc)), 0
    for op in ops:
        if not isinstance(op, dict) or not isinstance(op.get("path"), str):
            raise PatchError("an operation of a JSON patch needs an op and a path")
        if op.get("op") != "copy":
            doc = _apply_one(doc, op)
            continue
        value = _encode(_get(doc, _parse(op.get("from"))))
        copied += len(value)
        if copied > MAX_COPIED:
            raise PatchError(f"a JSON patch may copy {MAX_COPIED} bytes in all")
        doc = _put(doc, _parse(op["path"]), orjson.loads(value), insert=True)
    return doc


def _apply_one(doc: Any, op: Object) -> Any:
    """Returns the document after an operation that copies nothing of it; it is changed, or another takes its place."""
    path = _parse(op["path"])
    match op.get("op"):
        case "add":
            return _put(doc, path, _value(op), insert=True)
        case "remove":
            return _remove(doc, path)
        case "replace":
            if not isinstance(_get(doc, path[:-1]), dict):  # of a map, Kubernetes' library replaces a missing key too
                _get(doc, path)
            return _put(doc, path, _value(op), insert=False)
        case "move":
            source = _parse(op.get("from"))
            value = _get(doc, source)
            return _put(_remove(doc, source), path, value, insert=True)
        case "test":
            if not same(_find(doc, path), op.get("value")):
                raise PatchError(f"testing value {op['path']} failed")
            return doc
    raise PatchError(f"unexpected operation {op.get('op')!r} in a JSON patch")


def _encode(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        raise PatchError("a document is nested too deeply for a JSON patch") from None


def _value(op: Object) -> Any:
    if "value" not in op:
        raise PatchError(f"{op['op']} operation on {op['path']} has no value")
    return orjson.loads(_encode(op["value"]))  # operations that follow may change it


def _parse(pointer: Any) -> list[str]:
    if pointer == "":
        return []
    if not isinstance(pointer, str) or not pointer.startswith("/"):
        raise PatchError(f"{pointer!r} is no JSON pointer")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


def _pointer(path: list[str]) -> str:
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in path)


def _index(items: list[Any], token: str, *, room: int) -> int:
    """Returns a list index; negative ones count from the end, as the API server takes them."""
    try:
        index = int(token)
    except ValueError:
        raise PatchError(f"{token!r} is no list index") from None
    if index < 0:
        index += len(items) + room
    if not 0 <= index < len(items) + room:
        raise PatchError(f"list index {token} is out of bounds")
    return index


def _get(doc: Any, path: list[str]) -> Any:
    for token in path:
        if isinstance(doc, dict) and token in doc:
            doc = doc[token]
        elif isinstance(doc, list):
            doc = doc[_index(doc, token, room=0)]
        else:
            raise PatchError(f"the document has no {_pointer(path)}")
    return doc


def _find(doc: Any, path: list[str]) -> Any:
    """Reads as `_get`, but a missing key of a map as null: so `test` may ask for absence."""
    if path:
        parent = _get(doc, path[:-1])
        if isinstance(parent, dict):
            return parent.get(path[-1])
    return _get(doc, path)


def _put(doc: Any, path: list[str], value: Any, *, insert: bool) -> Any:
    if not path:
        return value
    parent, token = _parent(doc, path), path[-1]
    if isinstance(parent, dict):
        parent[token] = value
    elif not insert:
        parent[_index(parent, token, room=0)] = value
    else:
        index = len(parent) if token == "-" else _index(parent, token, room=1)  # noqa: S105 - no password
        parent.insert(index, value)
    return doc


def _remove(doc: Any, path: list[str]) -> Any:
    if not path:
        return None
    parent, token = _parent(doc, path), path[-1]
    if isinstance(parent, list):
        del parent[_index(parent, token, room=0)]
    elif token in parent:
        del parent[token]
    else:
        raise PatchError(f"unable to remove nonexistent key {_pointer(path)}")
    return doc


def _parent(doc: Any, path: list[str]) -> dict[str, Any] | list[Any]:
    parent = _get(doc, path[:-1])
    if not isinstance(parent, dict | list):
        raise PatchError(f"the document has no {_pointer(path)}")
    return parent


def diff(before: Any, after: Any) -> list[Object]:
    """Returns the operations that lead from one document to the other; `[]` where they are the same."""
    ops: list[Object] = []
    _diff(before, after, [], ops)
    return ops


def _diff(before: Any, after: Any, path: list[str], ops: list[Object]) -> None:
    if orjson.dumps(before) == orjson.dumps(after):  # at once for most of a document
        return
    if isinstance(before, dict) and isinstance(after, dict):
        ops += ({"op": "remove", "path": _pointer([*path, key])} for key in before if key not in after)
        for key, value in after.items():
            if key in before:
                _diff(before[key], value, [*path, key], ops)
            else:
                ops.append({"op": "add", "path": _pointer([*path, key]), "value": value})
    elif isinstance(before, list) and isinstance(after, list):
        common = min(len(before), len(after))
        for index in range(common):
            _diff(before[index], after[index], [*path, str(index)], ops)
        ops += ({"op": "add", "path": _pointer([*path, "-"]), "value": value} for value in after[common:])
        surplus = reversed(range(common, len(before)))
        ops += ({"op": "remove", "path": _pointer([*path, str(index)])} for index in surplus)
    elif not same(before, after):
        ops.append({"op": "replace", "path": _pointer(path), "value": after})
