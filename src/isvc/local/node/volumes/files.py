"""What a pod needs from the API server: ConfigMaps, Secrets, tokens and volumes, for its volumes and variables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from isvc.kube.node_selectors import selects
from isvc.kube.objects import Object, containers_of, dig, name_of, namespace_of
from isvc.kube.resource import CONFIG_MAPS, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, SECRETS, Resource
from isvc.local.node import environment
from isvc.local.node.environment import Missing
from isvc.local.node.volumes import folders
from isvc.local.node.volumes.tokens import request_tokens
from isvc.toolkit.client import Client


async def files_of(pod: Object, client: Client, disk: Path, node: str) -> folders.Files:
    """Raises Missing where a variable has no source, or a volume no folder below `disk` of the node."""
    from_env, mounted = environment.references(pod), folders.references(pod)
    config_maps = await _contents(client, pod, CONFIG_MAPS, from_env[0] | mounted[0])
    secrets = await _contents(client, pod, SECRETS, from_env[1] | mounted[1])
    volumes = {name: folder async for name, folder in _volumes(pod, client, disk, node)}
    files = folders.Files(config_maps, secrets, await request_tokens(pod, client), volumes)
    for spec in containers_of(pod.get("spec") or {}):
        environment.container_env(pod, spec, files.as_text())
    return files


def mounts(pod: Object, resource: Resource, obj: Object) -> bool:
    """Returns whether a ConfigMap or Secret is among a pod's volumes."""
    config_maps, secrets = folders.references(pod)
    names = secrets if resource is SECRETS else config_maps
    return namespace_of(obj) == namespace_of(pod) and name_of(obj) in names


async def require_claims(pod: Object, client: Client, claims: Path) -> None:
    """Raises Missing for a claim that nobody has made, neither as an object nor as a folder in `claims`."""
    for name in folders.claims(pod):
        folder = claims / namespace_of(pod) / name
        if not folder.exists() and not await client.find(PERSISTENT_VOLUME_CLAIMS, name, namespace_of(pod)):
            raise Missing(f'persistentvolumeclaim "{name}" not found, and there is no folder {folder} in its place')


async def _volumes(pod: Object, client: Client, disk: Path, node: str) -> AsyncIterator[tuple[str, Path]]:
    """Yields the folder of each claim that names a volume. What a volume calls `/models` is `models` on this disk."""
    for claim in folders.claims(pod):
        volume = dig(await client.find(PERSISTENT_VOLUME_CLAIMS, claim, namespace_of(pod)), "spec", "volumeName")
        if not volume:
            continue
        live = await client.find(PERSISTENT_VOLUMES, volume)
        if live is None:
            raise Missing(f'persistentvolume "{volume}", which claim {claim} names, not found')
        await _require_affinity(live, client, node)
        yield claim, _folder_of(live, disk)


async def _require_affinity(volume: Object, client: Client, node: str) -> None:
    """Raises Missing for a volume that is on other nodes alone."""
    selector = dig(volume, "spec", "nodeAffinity", "required")
    if selector and not selects(selector, await client.get(NODES, node)):
        raise Missing(
            f'persistentvolume "{name_of(volume)}" is elsewhere: its node affinity does not match node {node}'
        )


def _folder_of(volume: Object, disk: Path) -> Path:
    path = str(dig(volume, "spec", "hostPath", "path") or dig(volume, "spec", "local", "path") or "")
    folder = disk / path.strip("/")
    if not path or not folder.resolve().is_relative_to(disk.resolve()):
        raise Missing(f'persistentvolume "{name_of(volume)}" is no folder that a local node has')
    return folder


async def _contents(
    client: Client, pod: Object, resource: Resource, names: set[str]
) -> dict[str, Mapping[str, bytes] | None]:
    found: dict[str, Mapping[str, bytes] | None] = {}
    for name in sorted(names):
        obj = await client.find(resource, name, namespace_of(pod))
        found[name] = None if obj is None else folders.contents({**obj, "kind": resource.kind})
    return found
