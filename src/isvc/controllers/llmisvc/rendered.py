"""Asks the API server whether a merged spec is one that a service may have.

Configurations are templates, so their schema is loose: only what comes out can be checked. A dry run puts it through
the schema, its rules and our own webhook. One answer serves all services that differ in nothing but names: those were
checked when the service was admitted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Final
from weakref import WeakSet

import orjson

from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.controllers.llmisvc.observed import Merged
from isvc.controllers.llmisvc.presets import NotCombined, storable
from isvc.controllers.llmisvc.status.conditions import PRESETS_COMBINED
from isvc.controllers.llmisvc.status.fold import references
from isvc.kube.conditions import is_true
from isvc.kube.equality import equivalent
from isvc.kube.errors import ApiError, BadRequest, Invalid
from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.serving import names
from isvc.toolkit.client import Client

_HARMLESS: Final = re.compile(r"(?:\w+://)?[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)*")
_LONGEST: Final = 200
_MOST: Final = 10_000


class RenderedSpecs:
    """Checks merged specs, and remembers which were good."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._checked: WeakSet[Merged] = WeakSet()  # a service's merge stays the same object until something changes
        self._good: dict[int, None] = {}
        self._asking: dict[int, asyncio.Lock] = {}

    async def check(self, raw: Object, merged: Merged) -> None:
        """Raises `NotCombined` for a spec that is refused, and `ApiError` where nobody could say."""
        if merged in self._checked:
            return
        spec = storable(merged.spec)
        fingerprint = hash(_anonymous(spec, raw))
        async with self._asking.setdefault(fingerprint, asyncio.Lock()):  # many may come up with the same at once
            try:
                if fingerprint not in self._good and not _was_good(raw, merged):
                    await self._dry_run(raw, merged, spec)
                self._good[fingerprint] = None
                self._checked.add(merged)
            finally:
                self._asking.pop(fingerprint, None)
        if len(self._good) > _MOST:
            del self._good[next(iter(self._good))]

    async def _dry_run(self, raw: Object, merged: Merged, spec: Object) -> None:
        body = {
            "apiVersion": LLM_INFERENCE_SERVICES.api_version,
            "kind": LLM_INFERENCE_SERVICES.kind,
            "metadata": {"generateName": names.child(name_of(raw), "-validation-"), "namespace": namespace_of(raw)},
            "spec": spec,
        }
        try:
            await self._client.create(LLM_INFERENCE_SERVICES, body, dry_run=True)
        except (Invalid, BadRequest) as error:  # a webhook calls malformed what the schema would call invalid
            raise NotCombined(refusal(error, merged), reason="InvalidRenderedConfig") from error


def refusal(error: ApiError, merged: Merged) -> str:
    configs = ", ".join(f"{each.source}:{each.namespace}/{each.name}" for each in merged.applied)
    return f"dry-run validation failed after merging configs [{configs}]: {_details(error)}"


def _details(error: ApiError) -> str:
    """What is wrong field by field; the message itself begins with the name of an object that nobody knows."""
    causes = error.details.get("causes") or ()
    return "; ".join(_cause(cause) for cause in causes) or error.message


def _cause(cause: Object) -> str:
    field, message = cause.get("field", ""), cause.get("message", "")
    return f"{field}: {message}" if field else message


def _was_good(raw: Object, merged: Merged) -> bool:
    """Whether an earlier run of this program found the same configurations good for this very service."""
    status = raw.get("status") or {}
    return (
        is_true(status.get("conditions") or (), PRESETS_COMBINED)
        and status.get("observedGeneration") == dig(raw, "metadata", "generation")
        and equivalent(status.get("appliedConfigs") or [], references(merged.applied))
    )


def _anonymous(spec: Object, raw: Object) -> bytes:
    """The spec's text without the names in it."""
    text = orjson.dumps(spec)
    for number, name in enumerate(_names(spec, raw)):
        if len(name) < _LONGEST and _HARMLESS.fullmatch(name):
            text = text.replace(name.encode(), b"\x00%d" % number)
    return text


def _names(spec: Object, raw: Object) -> Iterable[str]:
    model = spec.get("model") or {}
    found = (model.get("uri"), model.get("name"), name_of(raw), namespace_of(raw))
    return dict.fromkeys(name for name in found if name)
