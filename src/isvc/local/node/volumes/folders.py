"""Volumes as folders: empty ones of the pod, files from ConfigMaps and Secrets, claims that outlive pods."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from isvc.kube.objects import Object, dig, namespace_of
from isvc.local.node.environment import Missing, Sources, expand, field_value, resource_value
from isvc.local.node.volumes.tokens import Token, Wanted

_EMPTY = ("emptyDir", "ephemeral", "image")  # images are fetched by `image_volumes`


@dataclass(frozen=True, slots=True)
class Files:
    """Contents of the ConfigMaps and Secrets of a namespace, as bytes, None for one that does not exist; and tokens.

    `volumes` are the folders of claims that name a PersistentVolume.
    """

    config_maps: Mapping[str, Mapping[str, bytes] | None] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, bytes] | None] = field(default_factory=dict)
    tokens: Mapping[Wanted, Token] = field(default_factory=dict)
    volumes: Mapping[str, Path] = field(default_factory=dict)

    def as_text(self) -> Sources:
        return Sources(
            {name: _decode(values) for name, values in self.config_maps.items()},
            {name: _decode(values) for name, values in self.secrets.items()},
        )


def _decode(values: Mapping[str, bytes] | None) -> dict[str, str] | None:
    return None if values is None else {key: value.decode("utf-8", "replace") for key, value in values.items()}


def contents(obj: Object) -> dict[str, bytes]:
    """Returns the files in a ConfigMap or Secret."""
    if obj.get("kind") == "Secret":
        return {key: _base64(value) for key, value in (obj.get("data") or {}).items()}
    files = {key: str(value).encode() for key, value in (obj.get("data") or {}).items()}
    return files | {key: _base64(value) for key, value in (obj.get("binaryData") or {}).items()}


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except binascii.Error:
        return b""


def references(pod: Object) -> tuple[set[str], set[str]]:
    """Returns the names of the ConfigMaps and Secrets that a pod mounts."""
    config_maps: set[str] = set()
    secrets: set[str] = set()
    for volume in dig(pod, "spec", "volumes") or []:
        for source in (volume, *(dig(volume, "projected", "sources") or [])):
            if name := dig(source, "configMap", "name"):
                config_maps.add(name)
            if name := dig(source, "secret", "secretName") or dig(source, "secret", "name"):
                secrets.add(name)
    return config_maps, secrets


def claims(pod: Object) -> list[str]:
    """Returns the names of the claims that a pod mounts."""
    named = (dig(volume, "persistentVolumeClaim", "claimName") for volume in dig(pod, "spec", "volumes") or ())
    return sorted({claim for claim in named if claim})


def prepare(pod: Object, files: Files, pod_folder: Path, claims: Path) -> dict[str, Path]:
    """Makes and fills every volume of a pod; answers the folder (or file) of each by name.

    Doing it again renews the files of ConfigMaps and Secrets: each is replaced whole, and those that went are removed.
    """
    return {
        volume["name"]: _prepare(pod, volume, files, pod_folder / "volumes" / volume["name"], claims)
        for volume in dig(pod, "spec", "volumes") or []
    }


def _prepare(pod: Object, volume: Object, files: Files, folder: Path, claims: Path) -> Path:
    if path := dig(volume, "hostPath", "path"):
        return _host_path(volume, Path(path))
    if claim := dig(volume, "persistentVolumeClaim", "claimName"):
        if "/" in claim or claim in (".", ".."):
            raise Missing(f"{claim!r} is no name of a claim")
        folder = files.volumes.get(claim) or claims / namespace_of(pod) / claim
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    if any(kind in volume for kind in _EMPTY):
        return folder
    written = {
        path
        for source in dig(volume, "projected", "sources") or [volume]
        for path in _fill(pod, source, files, folder, volume)
    }
    for path in folder.rglob("*"):
        if path.is_file() and path not in written:
            path.unlink()
    return folder


def _host_path(volume: Object, path: Path) -> Path:
    kind = dig(volume, "hostPath", "type") or ""
    if kind == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    if kind == "FileOrCreate":
        path.touch()
    if kind and not path.exists():
        raise Missing(f"hostPath {path} of volume {volume['name']} does not exist")
    return path


def _fill(pod: Object, source: Object, files: Files, folder: Path, volume: Object) -> Iterator[Path]:
    common = {"defaultMode": dig(volume, "projected", "defaultMode")}
    if (reference := source.get("configMap")) is not None:
        values = files.config_maps.get(reference.get("name", ""))
        yield from _write_all(common | reference, values, "configmap", folder)
    elif (reference := source.get("secret")) is not None:
        secret = reference.get("secretName") or reference.get("name", "")
        yield from _write_all({**common, **reference, "name": secret}, files.secrets.get(secret), "secret", folder)
    elif (reference := source.get("downwardAPI")) is not None:
        for item in reference.get("items") or []:
            yield _write(folder, item["path"], _downward(pod, item).encode(), _mode(item, common | reference))
    elif (reference := source.get("serviceAccountToken")) is not None:
        if token := files.tokens.get(Wanted.by(reference)):
            yield _write(folder, reference["path"], token.text.encode(), 0o600)
    else:
        kind = next((key for key in source if key != "name"), "empty")
        raise Missing(f"volume {volume['name']} is of kind {kind}, which a local node cannot mount")


def _downward(pod: Object, item: Object) -> str:
    if reference := item.get("resourceFieldRef"):
        return resource_value(pod, {}, reference)
    return field_value(pod, dig(item, "fieldRef", "fieldPath") or "")


def _write_all(reference: Object, values: Mapping[str, bytes] | None, kind: str, folder: Path) -> Iterator[Path]:
    if values is None:
        if reference.get("optional"):
            return
        raise Missing(f'{kind} "{reference.get("name")}" not found')
    items = reference.get("items")
    for item in items or ({"key": key, "path": key} for key in values):
        if item["key"] in values:
            yield _write(folder, item["path"], values[item["key"]], _mode(item, reference))
        elif not reference.get("optional"):
            raise Missing(f'{kind} "{reference.get("name")}" has no key {item["key"]}')


def _mode(item: Object, reference: Object) -> int:
    """Returns the bits for a file's owner, who can always read it and runs the pod's processes; others get none."""
    asked = item.get("mode") or reference.get("defaultMode") or 0
    return 0o400 | (int(asked) & 0o700 or 0o600)


def _write(folder: Path, path: str, content: bytes, mode: int) -> Path:
    target = folder / path
    if not target.resolve().is_relative_to(folder.resolve()):
        raise Missing(f"the path {path} leaves its volume")
    if target.is_file() and target.read_bytes() == content:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name(f".{target.name}.new")
    fresh.touch(mode=0o600)
    fresh.write_bytes(content)
    fresh.chmod(mode)
    fresh.replace(target)
    return target


def mounts(container: Object, volumes: Mapping[str, Path], env: Mapping[str, str]) -> dict[str, str]:
    """Returns mount path → folder, for one container."""
    found = {}
    for mount in container.get("volumeMounts") or []:
        if mount["name"] not in volumes:
            continue
        sub_path = mount.get("subPath") or expand(mount.get("subPathExpr") or "", env)
        folder = volumes[mount["name"]] / sub_path
        if not folder.resolve().is_relative_to(volumes[mount["name"]].resolve()):
            raise Missing(f"subPath {sub_path} of volume {mount['name']} leads out of it")
        if sub_path and not folder.exists():
            if mount.get("readOnly"):  # nothing would ever be in it
                raise Missing(f"there is no {sub_path} in {volumes[mount['name']]}")
            folder.mkdir(parents=True, exist_ok=True)
        found[mount["mountPath"]] = str(folder)
    return found
