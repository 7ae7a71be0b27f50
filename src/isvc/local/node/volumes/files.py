"""What a pod needs from the API server: ConfigMaps, Secrets and tokens, for its volumes and variables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from isvc.kube.errors import NotFound
from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.resource import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, SECRETS, Resource
from isvc.local.node import environment
from isvc.local.node.environment import Missing
from isvc.local.node.volumes import folders
from isvc.local.node.volumes.tokens import request_tokens
from isvc.toolkit.client import Client


async def files_of(pod: Object, client: Client) -> folders.Files:
    """Raises Missing where a variable has no source."""
    from_env, mounted = environment.references(pod), folders.references(pod)
    config_maps = await _contents(client, pod, CONFIG_MAPS, from_env[0] | mounted[0])
    secrets = await _contents(client, pod, SECRETS, from_env[1] | mounted[1])
    files = folders.Files(config_maps, secrets, await request_tokens(pod, client))
    for spec in [*(dig(pod, "spec", "initContainers") or []), *(dig(pod, "spec", "containers") or [])]:
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
        if not folder.exists() and not await exists(client, PERSISTENT_VOLUME_CLAIMS, name, namespace_of(pod)):
            raise Missing(f'persistentvolumeclaim "{name}" not found, and there is no folder {folder} in its place')


async def exists(client: Client, resource: Resource, name: str, namespace: str) -> bool:
    try:
        await client.get(resource, name, namespace)
    except NotFound:
        return False
    return True


async def _contents(
    client: Client, pod: Object, resource: Resource, names: set[str]
) -> dict[str, Mapping[str, bytes] | None]:
    found: dict[str, Mapping[str, bytes] | None] = {}
    for name in sorted(names):
        try:
            obj = await client.get(resource, name, namespace_of(pod))
            found[name] = folders.contents({**obj, "kind": resource.kind})
        except NotFound:
            found[name] = None
    return found
