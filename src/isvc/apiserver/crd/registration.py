"""Keeps the registry in step with the CustomResourceDefinitions in the store."""

from __future__ import annotations

import logging

from isvc.apiserver.admission.caller import Caller
from isvc.apiserver.crd.acceptance import is_established
from isvc.apiserver.crd.sharing import share_parts
from isvc.apiserver.resources.registry import Registry
from isvc.apiserver.store.entry import DELETED, Entry, Event
from isvc.apiserver.store.store import Store
from isvc.kube.resource import CUSTOM_RESOURCE_DEFINITIONS

log = logging.getLogger(__name__)

COLLECTION = str(CUSTOM_RESOURCE_DEFINITIONS)


class CustomResources:
    def __init__(self, store: Store, registry: Registry, caller: Caller) -> None:
        """`caller` is how conversion webhooks are reached."""
        self._registry = registry
        self._caller = caller
        self._specs: dict[str, object] = {}
        for entry in store.list(COLLECTION):
            self._install(entry)
        store.subscribe(COLLECTION, self._on_event)

    def _on_event(self, event: Event) -> None:
        if event.type == DELETED:
            self._specs.pop(event.entry.name, None)
            self._registry.remove(event.entry.name)
        else:
            self._install(event.entry)

    def _install(self, entry: Entry) -> None:
        from isvc.apiserver.crd import descriptions

        crd = share_parts(entry.parse())
        if not is_established(crd):
            return
        names = crd["status"]["acceptedNames"]
        if self._specs.get(entry.name) == (crd["spec"], names):
            return  # metadata or conditions changed: watches may go on
        try:
            served = descriptions(crd, self._caller)
        except Exception:
            log.exception("CustomResourceDefinition %s cannot be served", entry.name)
            return
        self._specs[entry.name] = (crd["spec"], names)
        self._registry.install(entry.name, served)
