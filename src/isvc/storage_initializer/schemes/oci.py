"""Models in OCI images, straight from the registry: what the image holds under /models.

Speaks the registry's HTTP interface; the docker config that the pod has mounted says who we are. Every layer is
compared with the digest that names it before it is unpacked.
"""

from __future__ import annotations

import base64
import json
import platform
import re
import shutil
import ssl
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlencode

from isvc.storage_initializer.errors import Damaged, Denied, NotFound, StorageError, Unsupported
from isvc.storage_initializer.settings import Settings
from isvc.storage_initializer.transfer import Digest, RemoteFile, download
from isvc.storage_initializer.web import Web, WebFile, tls_context

DOCKER_CONFIG: Final = "/mnt/oci-fetch-auth/config.json"
MODELS: Final = "models"
INDEXES: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFESTS: Final = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
LAYER: Final = re.compile(r"application/vnd\.(oci\.image\.layer\.v1\.tar|docker\.image\.rootfs\.diff\.tar)([.+]\w+)?")
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


class Image(NamedTuple):
    registry: str
    repository: str
    reference: str


def fetch(uri: str, folder: Path, settings: Settings) -> None:
    image = parse(uri)
    registry = _Registry(image, settings)
    manifest = registry.manifest(image.reference)
    if manifest.get("mediaType") in INDEXES or "manifests" in manifest:
        manifest = registry.manifest(_for_this_machine(uri, manifest["manifests"]))
    layers = folder / ".layers"
    for layer in manifest.get("layers", ()):
        if _is_readable(uri, layer):
            layers.mkdir(exist_ok=True)
            download(f"{uri} layer {layer['digest'][:19]}", [registry.blob(layer)], layers)
            _unpack_models(layers / "layer", folder)
    shutil.rmtree(layers, ignore_errors=True)
    if not any(folder.iterdir()):
        raise NotFound(f"{uri}: the image has no files under /{MODELS}")


def parse(uri: str) -> Image:
    """`oci://registry/repository[:tag|@digest]`"""
    registry, _, path = uri.removeprefix("oci://").partition("/")
    repository, digest_mark, digest = path.partition("@")
    folder, _, last = repository.rpartition("/")
    last, _, tag = last.partition(":")
    repository = f"{folder}/{last}".lstrip("/")
    if not registry or not repository:
        raise StorageError(f"{uri}: expected oci://registry/repository:tag")
    return Image(registry, repository, digest if digest_mark else tag or "latest")


class _Registry:
    def __init__(self, image: Image, settings: Settings) -> None:
        insecure = settings.flag("KSERVE_OCI_INSECURE_REGISTRY")
        self.web = Web(_unverified() if insecure else tls_context(settings))
        self.base = f"{'http' if insecure else 'https'}://{image.registry}/v2/{image.repository}"
        self.login = _login(image.registry, Path(settings.get("KSERVE_OCI_DOCKER_CONFIG", DOCKER_CONFIG)))
        self.authorization = f"Basic {self.login}" if self.login else ""

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": self.authorization} if self.authorization else {}

    def manifest(self, reference: str) -> Any:
        url = f"{self.base}/manifests/{reference}"
        accept = {"Accept": ", ".join((*INDEXES, *MANIFESTS))}
        try:
            return self.web.json(url, {**self.headers, **accept})
        except Denied as error:
            if not self._get_token(error):
                raise
        return self.web.json(url, {**self.headers, **accept})

    def blob(self, layer: Any) -> RemoteFile:
        digest = Digest.sha256(bytes.fromhex(layer["digest"].removeprefix("sha256:")))
        file = WebFile(self.web, f"{self.base}/blobs/{layer['digest']}", self.headers, digest)
        return RemoteFile("layer", file.open, layer.get("size"))

    def _get_token(self, refused: Denied) -> bool:
        """Most registries refuse at first and say where to get a token, which strangers may also have."""
        answer = refused.__cause__
        challenge = answer.headers.get("WWW-Authenticate", "") if isinstance(answer, HTTPError) else ""
        asked = dict(re.findall(r'(\w+)="([^"]*)"', challenge))
        if not challenge.lower().startswith("bearer ") or "realm" not in asked:
            return False
        query = urlencode({name: asked[name] for name in ("service", "scope") if name in asked})
        login = {"Authorization": f"Basic {self.login}"} if self.login else {}
        given = self.web.json(f"{asked['realm']}?{query}", login)
        self.authorization = f"Bearer {given.get('token') or given.get('access_token')}"
        return True


def _login(registry: str, config: Path) -> str:
    """The registry's entry in the docker config, as HTTP sends it; empty when there is none that can be read."""
    try:
        entries = json.loads(config.read_text())["auths"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    for name in (registry, f"https://{registry}", registry.partition(":")[0]):
        entry = entries.get(name)
        if isinstance(entry, dict) and entry.get("auth"):
            return str(entry["auth"])
        if isinstance(entry, dict) and entry.get("username"):
            return base64.b64encode(f"{entry['username']}:{entry.get('password', '')}".encode()).decode()
    return ""


def _for_this_machine(uri: str, manifests: list[Any]) -> str:
    machine = platform.machine().lower()
    wanted = {"architecture": ARCHITECTURES.get(machine, machine), "os": "linux"}
    for entry in manifests:
        if wanted.items() <= entry.get("platform", {}).items():
            return str(entry["digest"])
    raise NotFound(f"{uri}: the image is not made for linux/{wanted['architecture']}")


def _is_readable(uri: str, layer: Any) -> bool:
    """Attestations and configurations are no layers; zstd is a layer that Python cannot unpack yet."""
    kind = LAYER.fullmatch(layer.get("mediaType", ""))
    if kind and kind[2] and kind[2].endswith("zstd"):
        raise Unsupported(f"{uri}: a layer is compressed with zstd; build the image with gzip")
    return kind is not None


def _unpack_models(layer: Path, folder: Path) -> None:
    try:
        with tarfile.open(layer, "r:*") as tar:
            for member in tar:
                parts = PurePosixPath(member.name).parts
                if len(parts) > 1 and parts[0] == MODELS:
                    _unpack_member(tar, member, PurePosixPath(*parts[1:]), folder)
    except (tarfile.TarError, EOFError) as error:
        raise Damaged(f"a layer cannot be unpacked: {error}") from error


def _unpack_member(tar: tarfile.TarFile, member: tarfile.TarInfo, path: PurePosixPath, folder: Path) -> None:
    if ".." in path.parts:
        raise Damaged(f"a layer is refused, since {member.name!r} would be unpacked outside the model's folder")
    if path.name.startswith(".wh."):  # how a layer says that a file of an earlier one is gone
        gone = folder / path.with_name(path.name.removeprefix(".wh."))
        if gone.is_dir():
            shutil.rmtree(gone)
        else:
            gone.unlink(missing_ok=True)
        return
    tar.extract(member.replace(name=str(path), deep=False), folder, filter="data")


def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
