"""Answers without what two servers may differ in: identities, times, versions, and the order of what has none."""

from __future__ import annotations

import json
import re
from typing import Any

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_PATCHED = re.compile(r'(?<=patch: )Invalid value: ".*": .*|^Invalid value: "(\{|map\[).*": .*', re.DOTALL)
_DUMPED = re.compile(r"Invalid value: \{.*\}: field is immutable", re.DOTALL)
_AGE = re.compile(r"\d+s|\d+m\d*s?")
_HIDDEN = {"resourceVersion", "uid", "continue", "selfLink"}


def normal(value: Any) -> Any:
    if isinstance(value, dict):
        shown = {key: normal(item) for key, item in value.items() if key not in _HIDDEN}
        if isinstance(shown.get("managedFields"), list):
            shown["managedFields"] = sorted((_manager(each) for each in shown["managedFields"]), key=_rank)
        if isinstance(shown.get("cells"), list):  # of a table: two servers do not create an object in the same second
            shown["cells"] = ["AGE" if _AGE.fullmatch(str(cell)) else cell for cell in shown["cells"]]
        if shown.get("kind") == "Status":
            return _status(shown)
        return shown
    if isinstance(value, list):
        return [normal(each) for each in value]
    if isinstance(value, str):
        value = _DUMPED.sub("DUMPED", value)
        return _PATCHED.sub("PATCHED: ", _TIME.sub("TIME", _UUID.sub("UID", value)).partition("\n@@ ")[0])
    return value


def _rank(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _manager(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "time"}


def _status(status: dict[str, Any]) -> dict[str, Any]:
    """Several causes come in the order of a Go map, in the message as well."""
    causes = (status.get("details") or {}).get("causes")
    if "failed to create typed" in status.get("message", ""):
        return {**status, "message": "failed to create typed object"}
    if causes:
        listed = sorted({_rank(each) for each in causes})
        message = status["message"] if len(listed) == 1 else ""
        return {**status, "message": message, "details": {**status["details"], "causes": listed}}
    return status


def differences(left: Any, right: Any, path: str = "") -> list[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        found = []
        for key in sorted(left.keys() | right.keys()):
            if key not in right:
                found.append(f"{path}.{key}: only kube-apiserver: {left[key]!r}")
            elif key not in left:
                found.append(f"{path}.{key}: only embedded: {right[key]!r}")
            else:
                found += differences(left[key], right[key], f"{path}.{key}")
        return found
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        pairs = enumerate(zip(left, right, strict=True))
        return [each for index, (a, b) in pairs for each in differences(a, b, f"{path}[{index}]")]
    return [] if left == right and type(left) is type(right) else [f"{path}: {left!r} != {right!r}"]
