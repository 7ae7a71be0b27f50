"""The kinds that people name, and the object that they mean by a name."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from isvc.api.kinds import NAMED
from isvc.api.resources import MODEL_CACHES
from isvc.insight.operations import NotPossible
from isvc.kube.errors import Forbidden, NotFound
from isvc.kube.objects import name_of
from isvc.kube.resource import Resource

if TYPE_CHECKING:
    from isvc.kube.objects import Object
    from isvc.toolkit.client import Client

#: What each kind is called, beside its own name: kubectl's short names.
SHORT: Final = {row.resource: row.short_name for row in NAMED}
ALL: Final = tuple(SHORT)


def resource_called(word: str) -> Resource | None:
    """Returns the kind called isvc, InferenceService, inferenceservices or inferenceservices.serving.kserve.io."""
    wanted = word.lower()
    for resource, short in SHORT.items():
        if wanted in (short, resource.kind.lower(), resource.plural, str(resource)):
            return resource
    return None


async def find(client: Client, name: str, namespace: str) -> tuple[Resource, Object]:
    """Finds the one service that `name` means; `KIND/NAME` tells two of the same name apart."""
    word, slash, rest = name.rpartition("/")
    if not rest:
        raise NotPossible(f"{name!r} names no service")
    kinds: tuple[Resource, ...] = ALL
    if slash:
        resource = resource_called(word)
        if resource is None:
            raise NotPossible(f"there is no kind {word!r}; it is one of {', '.join(SHORT.values())}")
        kinds = (resource,)
    asked = (client.get(resource, rest, namespace) for resource in kinds)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    _raise_unless_answered(answers)
    matches = [(resource, obj) for resource, obj in zip(kinds, answers, strict=True) if isinstance(obj, dict)]
    # A cache is often called like the service of its model: a bare name means the service.
    matches = [each for each in matches if each[0] not in MODEL_CACHES] or matches
    if not matches:
        raise NotPossible(_absent(kinds, rest, namespace, await list_all(client, namespace, kinds)))
    if len(matches) > 1:
        choices = " or ".join(f"{SHORT[resource]}/{rest}" for resource, _ in matches)
        raise NotPossible(f"there is more than one {rest} in namespace {namespace}: say {choices}")
    return matches[0]


async def list_all(client: Client, namespace: str, kinds: tuple[Resource, ...] = ()) -> list[Object]:
    """Lists every object of the kinds, or of all of them, but not of those that the cluster does not have.

    A cluster that has none of them is another one than was meant, or has no KServe.
    """
    asked = (client.list(resource, namespace) for resource in kinds or ALL)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    _raise_unless_answered(answers)
    if all(isinstance(answer, NotFound) for answer in answers):
        named = ", ".join(str(resource) for resource in kinds if kinds != ALL)
        which = named or "KServe's kinds"
        raise NotPossible(f"{client.config.server} does not have {which}; `isvc manifests` prints what it needs")
    return [obj for answer in answers if not isinstance(answer, BaseException) for obj in answer.items]


def _raise_unless_answered(answers: Sequence[object]) -> None:
    """Passes over a kind that is not installed or not this user's to read; raises any other failure.

    If no kind could be read, that is what is raised.
    """
    errors = [answer for answer in answers if isinstance(answer, BaseException)]
    forbidden = [error for error in errors if isinstance(error, Forbidden)]
    others = [error for error in errors if not isinstance(error, (Forbidden, NotFound))]
    if others:
        raise others[0]
    if forbidden and not any(not isinstance(answer, BaseException) for answer in answers):
        raise forbidden[0]


def _absent(kinds: tuple[Resource, ...], name: str, namespace: str, there: list[Object]) -> str:
    kind = kinds[0].kind if len(kinds) == 1 else "service"
    alike = get_close_matches(name, [name_of(each) for each in there], 1)
    hint = f"is {alike[0]} meant?" if alike else "`isvc get -A` lists all there are"
    return f"there is no {kind} {name!r} in namespace {namespace}; {hint}"
