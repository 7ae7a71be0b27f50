"""Which names the committed CustomResourceDefinitions have: the store knows, and this follows it."""

from __future__ import annotations

from typing import Final

import msgspec

from isvc.apiserver.crd.acceptance import Taken
from isvc.apiserver.store.entry import DELETED, Entry, Event
from isvc.apiserver.store.store import Store
from isvc.kube.conditions import is_true
from isvc.kube.objects import Object, name_of
from isvc.kube.resource import CUSTOM_RESOURCE_DEFINITIONS

DEFINITIONS = str(CUSTOM_RESOURCE_DEFINITIONS)


class _Spec(msgspec.Struct):
    group: str


class _Status(msgspec.Struct, rename="camel"):
    accepted_names: Object | None = None
    conditions: list[Object] | None = None


class _Definition(msgspec.Struct):
    """What of a definition is about names: its schemas are a hundred times as much."""

    spec: _Spec
    status: _Status | None = None


_decode: Final = msgspec.json.Decoder(_Definition).decode


class ClaimedNames:
    def __init__(self) -> None:
        self._accepted: dict[str, tuple[str, Object]] = {}
        #: Definitions that have not got all of their names.
        self.waiting: set[str] = set()

    def follow(self, store: Store) -> None:
        for entry in store.list(DEFINITIONS):
            self._note(entry)
        store.subscribe(DEFINITIONS, self._on_event)

    def names_of_others(self, crd: Object) -> Taken:
        group = crd["spec"].get("group")
        others = [names for name, (its, names) in self._accepted.items() if its == group and name != name_of(crd)]
        return Taken(
            frozenset(each for names in others for each in _resources(names)),
            frozenset(each for names in others for each in _kinds(names)),
        )

    def _on_event(self, event: Event) -> None:
        if event.type == DELETED:
            self._accepted.pop(event.entry.name, None)
            self.waiting.discard(event.entry.name)
        else:
            self._note(event.entry)

    def _note(self, entry: Entry) -> None:
        definition = _decode(entry.raw)
        status = definition.status or _Status()
        self._accepted[entry.name] = definition.spec.group, status.accepted_names or {}
        accepted = is_true(status.conditions or (), "NamesAccepted")
        (self.waiting.discard if accepted else self.waiting.add)(entry.name)


def _resources(names: Object) -> list[str]:
    return [each for each in (names.get("plural"), names.get("singular"), *(names.get("shortNames") or ())) if each]


def _kinds(names: Object) -> list[str]:
    return [each for each in (names.get("kind"), names.get("listKind")) if each]
