"""Kinds on the API server of a suite: created by the first test that needs them, and left for the others."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

import orjson

from isvc.api.kinds import KINDS
from isvc.api.kinds.crds import crd, crds
from isvc.kube.errors import AlreadyExists, NotFound
from isvc.kube.objects import Object, name_of
from isvc.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, Resource
from isvc.toolkit.client import Client
from isvc.toolkit.failure import Unreachable
from tests.waiting import until

PATIENCE = 240.0  # a definition with a large schema costs kube-apiserver many seconds of work


@cache
def ours(resource: Resource) -> Object:
    """The definition of a kind of ours, without the webhook that would convert its objects."""
    return crd(next(each for each in KINDS if str(each.resource) == str(resource)), described=True)


def write_ours(folder: Path) -> Path:
    """One to a file, for programs that take a folder."""
    folder.mkdir(exist_ok=True)
    for each in crds(described=True):
        (folder / f"{name_of(each)}.yaml").write_bytes(orjson.dumps(each))
    return folder


async def install(client: Client, *definitions: Object) -> None:
    """Create those that are not served yet, and wait until they are."""
    missing = [each for each in definitions if not await is_served(client, _stored(each))]
    for definition in missing:
        await until(partial(_is_created, client, definition), f"{name_of(definition)} is created", PATIENCE)
    for definition in missing:
        await until(partial(is_served, client, _stored(definition)), f"{name_of(definition)} is served", PATIENCE)


async def is_served(client: Client, resource: Resource) -> bool:
    """Which a kind is a moment after its definition is established; the first answer takes kube-apiserver seconds."""
    try:
        await client.request("GET", resource.path(), params={"limit": "1"})
    except (NotFound, Unreachable):
        return False
    return True


async def _is_created(client: Client, definition: Object) -> bool:
    """False when a busy server did not answer in time, and has to be asked again."""
    try:
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    except AlreadyExists:
        return True
    except Unreachable:
        return False
    return True


def _stored(definition: Object) -> Resource:
    """The resource in the version that is stored."""
    spec = definition["spec"]
    [version] = [each["name"] for each in spec["versions"] if each["storage"]]
    names = spec["names"]
    return Resource(spec["group"], version, names["plural"], names["kind"], namespaced=spec["scope"] == "Namespaced")
