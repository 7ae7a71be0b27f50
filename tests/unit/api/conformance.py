"""The shared conformance cases, as far as they are there: what is applied, and what the reference made of it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.recordings import FOLDER, load, load_all

from isvc.api.llm.conversion import KINDS, convert
from isvc.kube.patch import merge_patch


@dataclass
class Write:
    """One object on its way in, what is stored under its name, and what else is there."""

    new: dict[str, Any]
    old: dict[str, Any] | None
    around: list[dict[str, Any]]


@dataclass
class Writes:
    """All writes of one object in one step; how many the reference refused is known, which ones is not."""

    title: str
    entries: list[dict[str, Any]]
    refusals: list[dict[str, Any]]
    stored: dict[str, dict[str, Any]]

    def __iter__(self) -> Iterator[Write]:
        """One after the other. The caller says with `keep` what became of each."""
        for entry in self.entries:
            old = self.stored.get(self.title)
            if old is not None and entry["kind"] in KINDS:
                old = convert([old], entry["apiVersion"])[0]
            new = merge_patch.apply(old, entry) if old is not None else entry
            yield Write(copy.deepcopy(new), old, list(self.stored.values()))

    def keep(self, obj: dict[str, Any]) -> None:
        self.stored[self.title] = obj


def cases() -> list[Path]:
    return sorted(FOLDER.glob("cases/*/*.yaml"))


def configuration(profile: str) -> dict[str, str]:
    """The ConfigMap of a profile: its sections laid over the base."""
    base: dict[str, str] = dict(load(FOLDER / "base" / "10-config.yaml")["data"])
    for section, changes in ((load(FOLDER / "profiles" / f"{profile}.yaml") or {}).get("config") or {}).items():
        merged = json.loads(base.get(section, "{}")) | changes
        base[section] = json.dumps({key: value for key, value in merged.items() if value is not None})
    return base


def base_objects(kind: str) -> list[dict[str, Any]]:
    documents = [document for path in sorted(FOLDER.glob("base/*.yaml")) for document in load_all(path)]
    return [document for document in documents if document.get("kind") == kind]


def replay(path: Path) -> Iterator[Writes]:
    """The creates and updates of a case, in order. The state before each step is the one the reference left."""
    golden = load(FOLDER / "golden" / path.parent.name / path.name)
    stored: dict[str, dict[str, Any]] = {}
    for step, after in zip(load(path)["steps"], golden, strict=True):
        for verb in ("apply", "update"):
            by_title: dict[str, list[dict[str, Any]]] = {}
            entries = step.get(verb) or []
            for entry in entries if isinstance(entries, list) else [entries]:
                obj = json.loads(json.dumps(entry).replace("$NAMESPACE", path.stem))
                obj.setdefault("metadata", {}).setdefault("namespace", path.stem)
                by_title.setdefault(f"{obj['kind']}/{obj['metadata']['name']}", []).append(obj)
            for title, objects in by_title.items():
                refused = [each for each in after.get("results", ()) if (each["verb"], each["target"]) == (verb, title)]
                yield Writes(title, objects, refused, stored)
        stored = _left(after["objects"], stored)


def _left(objects: dict[str, Any], stored: dict[str, Any]) -> dict[str, Any]:
    left = {}
    for key, obj in objects.items():
        kind, name = key.split(".")[0].split("/")[0], key.split("/", 1)[1]
        before = stored.get(f"{kind}/{name}")
        if before is not None:
            left[f"{kind}/{name}"] = {"apiVersion": before["apiVersion"], "kind": kind, **obj}
    return left


def with_defaults(value: Any, schema: dict[str, Any]) -> Any:
    """What an API server makes of an object before admission: nulls of absent fields gone, schema defaults set."""
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        filled = {
            name: copy.deepcopy(each["default"])
            for name, each in properties.items()
            if "default" in each and value.get(name) is None
        }
        for name, item in value.items():
            below = properties.get(name, others if isinstance(others, dict) else {})
            if item is not None:
                filled[name] = with_defaults(item, below)
        return filled
    if isinstance(value, list):
        return [with_defaults(item, schema.get("items", {})) for item in value]
    return value
