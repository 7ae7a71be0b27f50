"""What the parts of a storage URI and of a mount path mean."""

from __future__ import annotations

import hashlib
import posixpath
from typing import Final, NamedTuple

PVC: Final = "pvc://"
OCI: Final = "oci://"
MODEL_PATH: Final = "/mnt/models"


class OciUri(NamedTuple):
    """An OCI image; `mode` is empty where the ConfigMap decides how it reaches the pod."""

    mode: str
    uri: str

    @property
    def image(self) -> str:
        return self.uri.removeprefix(OCI)


def parse_oci(uri: str) -> OciUri | None:
    """`oci+native://host/image:tag` → native, `oci://host/image:tag`; None for another scheme."""
    if uri.startswith("oci+"):
        mode, separator, rest = uri.removeprefix("oci+").partition("://")
        if separator and mode:
            return OciUri(mode, OCI + rest)
    return OciUri("", uri) if uri.startswith(OCI) else None


def parse_pvc(uri: str) -> tuple[str, str]:
    """`pvc://claim/a/b` → claim and the path inside it."""
    name, _, path = uri.removeprefix(PVC).partition("/")
    return name, path


def cached_uri(uri: str, source: str, claim: str) -> str:
    """Returns where the node cache keeps a model: under the hash of the cached URI, then the rest of this one."""
    rest = uri.removeprefix(source)
    return f"{PVC}{claim}/models/{storage_key(source)}{'' if rest.startswith('/') else '/'}{rest}"


def storage_key(source: str) -> str:
    """Returns the name of the folder that a node keeps the model of this URI in: KServe's, so that both find it."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def volume_name(path: str) -> str:
    return path.strip("/").replace("/", "-")


def folder_of(path: str) -> str:
    """Returns the folder that holds a path, without trailing or doubled slashes; `.` for a bare name."""
    folder = posixpath.normpath(path[: path.rfind("/") + 1] or ".")
    return folder[1:] if folder.startswith("//") else folder


def parent(path: str) -> str:
    """Returns the folder to mount so that a path can be made in it."""
    folder = folder_of(path)
    return "/" if folder == "." else folder


def common_parent(paths: list[str]) -> str:
    """Returns the deepest folder that holds all paths; a single path is its own."""
    return paths[0] if len(paths) == 1 else posixpath.commonpath([f"/{path.strip('/')}" for path in paths])
