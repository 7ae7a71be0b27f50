"""Random sequences of requests. A step is data; each server fills in the versions that it gave out itself."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from tests.differential.kind import Json, Kind
from tests.differential.kinds import KINDS, LAST
from tests.wire import Answer, Wire

NAMES = ["x", "x", "x", "y"]
_NOTHING = st.none()
_NO_OPTIONS: st.SearchStrategy[tuple[tuple[str, Any], ...]] = st.just(())
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
JSON_PATCHES: list[list[Json]] = [
    [{"op": "add", "path": "/metadata/labels", "value": {"app": "p"}}],
    [{"op": "remove", "path": "/metadata/labels"}],
    [{"op": "test", "path": "/metadata/labels/app", "value": "a"}, {"op": "remove", "path": "/metadata/labels/app"}],
    [{"op": "add", "path": "/metadata/annotations/k~1v", "value": "1"}],
    [{"op": "replace", "path": "/spec/replicas", "value": 2}],
    [{"op": "add", "path": "/data/z", "value": "9"}],
    [{"op": "add", "path": "/spec/ports/-", "value": {"name": "z", "port": 99}}],
    [{"op": "add", "path": "/spec/tags/0", "value": "t"}],
    [{"op": "replace", "path": "/metadata/name", "value": "other"}],
    [{"op": "move", "from": "/metadata/annotations", "path": "/metadata/labels"}],
]


@dataclass(frozen=True, repr=False)
class Step:
    verb: str
    kind: Kind
    name: str
    body: Any = None
    options: tuple[tuple[str, Any], ...] = ()

    def __repr__(self) -> str:
        return f"{self.verb} {self.kind.plural}/{self.name} {dict(self.options)} {self.body}"


@dataclass
class Player:
    """Plays steps on one server and remembers the versions in its answers."""

    wire: Wire
    namespace: str
    versions: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def play(self, step: Step) -> Answer:
        answer = self._ask(step)
        version = answer[1].get("metadata", {}).get("resourceVersion")
        if version and answer[1].get("kind") == step.kind.kind:
            self.versions.setdefault((step.kind.plural, step.name), []).append(version)
        return answer

    def _ask(self, step: Step) -> Answer:
        kind, options = step.kind, dict(step.options)
        one = kind.path(self.namespace, step.name)
        query = f"?fieldManager={options['manager']}" if "manager" in options else ""
        if "validation" in options:
            query += ("&" if query else "?") + f"fieldValidation={options['validation']}"
        match step.verb:
            case "create":
                return self.wire.ask("POST", kind.path(self.namespace) + query, _whole(step, self.namespace))
            case "update":
                return self.wire.ask("PUT", one + query, self._versioned(step, options["version"]))
            case "merge" | "json" | "strategic":
                types = {"merge": MERGE, "json": JSON_PATCH, "strategic": STRATEGIC}
                return self.wire.ask("PATCH", one + query, step.body, types[step.verb])
            case "apply":
                force = "&force=true" if options["force"] else ""
                return self.wire.ask("PATCH", f"{one}{query}{force}", _whole(step, self.namespace), APPLY)
            case "status":
                return self.wire.ask("PATCH", f"{one}/status{query}", {"status": step.body}, MERGE)
            case "apply status":
                whole = {**_whole(replace(step, body={}), self.namespace), "status": step.body}
                force = "&force=true" if options["force"] else ""
                return self.wire.ask("PATCH", f"{one}/status{query}{force}", whole, APPLY)
            case "apply with status":
                whole = {**_whole(replace(step, body=LAST[kind.plural]), self.namespace), "status": step.body}
                return self.wire.ask("PATCH", f"{one}{query}&force=true", whole, APPLY)
            case "delete":
                return self.wire.ask("DELETE", one, step.body)
            case "get":
                return self.wire.ask("GET", one)
            case "list":
                return self.wire.ask("GET", f"{kind.path(self.namespace)}?labelSelector={step.body}")
            case "collection":
                return self.wire.ask("DELETE", f"{kind.path(self.namespace)}?labelSelector={step.body}")
            case _:
                raise AssertionError(step.verb)

    def _versioned(self, step: Step, version: str) -> Json:
        body = _whole(step, self.namespace)
        known = self.versions.get((step.kind.plural, step.name), [])
        if version == "newest" and known:
            body["metadata"]["resourceVersion"] = known[-1]
        elif version == "first" and known:
            body["metadata"]["resourceVersion"] = known[0]
        return body


def _whole(step: Step, namespace: str) -> Json:
    metadata = {**step.body.get("metadata", {}), "name": step.name, "namespace": namespace}
    return {"apiVersion": step.kind.api_version, "kind": step.kind.kind, **step.body, "metadata": metadata}


def _options(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[tuple[str, Any], ...]]:
    return st.fixed_dictionaries(fields).map(lambda chosen: tuple(chosen.items()))


def _without(body: Json, key: str) -> Json:
    """A patch that takes a field away, at the first place where it is found."""
    if key in body:
        return {key: None}
    for name, value in body.items():
        if isinstance(value, dict):
            found = _without(value, key)
            if found:
                return {name: found}
    return {}


def _steps_of(kind: Kind) -> st.SearchStrategy[Step]:
    name = st.sampled_from(NAMES)
    manager = st.sampled_from(["ann", "bob"])
    plain = _options(manager=manager, validation=st.sampled_from(["Warn", "Strict", "Ignore"]))
    removals = st.tuples(kind.bodies, st.sampled_from(["labels", "data", "replicas", "env", "mode", "ports", "spec"]))
    patches = st.one_of(kind.bodies, removals.map(lambda pair: _without(*pair)))
    selector = st.sampled_from(["", "app=a", "app%20in%20(a,b)", "!tier"])
    applied = _options(manager=manager, force=st.booleans())
    versioned = _options(manager=manager, version=st.sampled_from(["none", "newest", "first"]))
    deleted = st.sampled_from([None, {"propagationPolicy": "Orphan"}])

    def step(verb: str, body: st.SearchStrategy[Any] = _NOTHING, options: Any = _NO_OPTIONS) -> st.SearchStrategy[Step]:
        return st.builds(Step, st.just(verb), st.just(kind), name, body, options)

    choices = [
        step("create", kind.bodies, plain),
        step("create", kind.bodies, plain),
        step("update", kind.bodies, versioned),
        step("merge", patches, plain),
        step("json", st.sampled_from(JSON_PATCHES), plain),
        step("strategic", patches, plain),
        step("apply", kind.bodies, applied),
        step("apply", kind.bodies, applied),
        step("delete", deleted),
        step("get"),
        step("list", selector),
        step("collection", st.just("tier=x")),
    ]
    if kind.statuses is not None:
        choices.append(step("status", kind.statuses, _options(manager=manager)))
        choices.append(step("apply status", kind.statuses, applied))
        choices.append(step("apply with status", kind.statuses, _options(manager=manager)))
    return st.one_of(choices)


def sequences(size: int) -> st.SearchStrategy[list[Step]]:
    """Requests on one kind, as collisions need it, that begin with an object to collide on."""

    def of(kind: Kind) -> st.SearchStrategy[list[Step]]:
        first = Step("create", kind, NAMES[0], LAST[kind.plural], (("manager", "ann"),))
        return st.lists(_steps_of(kind), min_size=size // 2, max_size=size).map(lambda rest: [first, *rest])

    return st.sampled_from(KINDS).flatmap(of)
