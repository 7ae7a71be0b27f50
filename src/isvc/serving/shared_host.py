"""Two objects with one host: `{{ .Name }}-{{ .Namespace }}` makes the same of `a-b` in `c` and of `a` in `b-c`, and of
the predictor of `a` in `b` what it makes of `a` in `predictor-b`.

Which of them a request reaches is up to the ingress. The younger one, service or graph, says so in a condition that
affects no readiness.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from isvc.api.resources import INFERENCE_GRAPHS, INFERENCE_SERVICES
from isvc.engine.plan import Stop
from isvc.kube.conditions import conditions_of, find
from isvc.kube.objects import Key, Object, creation_time_of, dig, uid_of
from isvc.kube.resource import Resource
from isvc.toolkit.cache import Reader
from isvc.toolkit.controller import Watch
from isvc.toolkit.reads import Read

CONDITION: Final = "HostUnique"
REASON: Final = "HostConflict"
REMEDY: Final = "rename one of them, or make ingress.domainTemplate keep name and namespace apart"
LOOK_FOR_MOVE: Final = 60.0  # of an older one from the host that both have
_INDEX: Final = "place"


def _places_of(obj: Object) -> Iterator[str]:
    """Yields host and path of each URL that an object reports, its components' after its own."""
    components = dig(obj, "status", "components")
    reported = components.values() if isinstance(components, dict) else ()  # not every server checks what it stores
    for url in (dig(obj, "status", "url"), *(dig(each, "url") for each in reported)):
        if place := str(url or "").partition("://")[2].removesuffix("/"):
            yield place


READS: Final = (
    Read(INFERENCE_SERVICES, indexers={_INDEX: _places_of}),
    Read(INFERENCE_GRAPHS, indexers={_INDEX: _places_of}, optional=True),
)
"""What has to be read to find those of one host."""


def watch_places(resource: Resource, reader: Reader) -> tuple[Watch, ...]:
    """Returns what brings objects of a kind to be reconciled when one changes at a place that several have.

    An object reports its place itself, and may find only then that it is not alone there.
    """
    return tuple(
        Watch(
            read.resource,
            to=partial(_all_at_place, resource, reader, read),
            optional=read.optional,
            past=False,
            own=True,
        )
        for read in READS
    )


def _all_at_place(resource: Resource, reader: Reader, read: Read, changed: Object) -> list[Key]:
    """Returns those of a kind at the place of what changed, unless nobody else is there."""
    found = {(each.resource, key) for each in READS for key in _keys_at_place(changed, each.resource, reader)}
    is_alone = found <= {(read.resource, Key.of(changed))}
    return [] if is_alone else sorted(key for kind, key in found if kind == resource)


def _keys_at_place(obj: Object, resource: Resource, reader: Reader) -> Iterator[Key]:
    for place in _places_of(obj):
        yield from reader.keys(resource, _INDEX, place)


def host_conflict(obj: Object, reader: Reader) -> str | None:
    """Says which object is the oldest at a place of this one, unless it is this one at all of them."""
    for place in _places_of(obj):
        found = (
            (read.resource, other)
            for read in READS
            for key in reader.keys(read.resource, _INDEX, place)
            if (other := reader.get(read.resource, key.name, key.namespace)) is not None
        )
        kind, oldest = min(found, key=lambda each: _seniority(each[1]), default=(None, obj))
        if kind is not None and uid_of(oldest) != uid_of(obj):
            elder = f"{kind.kind} {Key.of(oldest)}"
            return f"{elder}, which is older, has the address {place}, too: requests may reach either"
    return None


def report_doubt(obj: Object, part: str) -> Iterator[Stop]:
    """Yields what the condition says, for those who ask what may surprise about an object."""
    if (shared := find(conditions_of(obj), CONDITION)) is not None:
        yield Stop(part, CONDITION, REASON, shared["message"], REMEDY)


def _seniority(obj: Object) -> tuple[str, str]:
    return creation_time_of(obj), uid_of(obj)
