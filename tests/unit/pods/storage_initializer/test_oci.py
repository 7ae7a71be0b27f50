"""Models out of images, from a small registry that wants a token."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import platform
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.growth import assert_grows_as_its_input
from tests.unit.pods.storage_initializer.sites import Answer, Site, private_ca, site

from isvc.pods.storage_initializer.program import run
from isvc.pods.storage_initializer.registry import read_challenge
from isvc.pods.storage_initializer.schemes.oci import ARCHITECTURES, Image, parse
from isvc.pods.storage_initializer.tarballs import ZSTD_MODULES, zstd

TAR = "application/vnd.oci.image.layer.v1.tar+gzip"
INDEX = "application/vnd.oci.image.index.v1+json"
ARCHITECTURE = ARCHITECTURES.get(platform.machine().lower(), platform.machine().lower())


@pytest.fixture
def registry() -> Iterator[Site]:
    with site() as made:
        made.spoil = lambda answer: guard(made, answer)
        made.files["/token"] = b'{"token": "let-me-in"}'
        yield made


def guard(made: Site, answer: Answer) -> bool:
    if answer.path.startswith("/token") or answer.headers.get("Authorization") == "Bearer let-me-in":
        return False
    answer.send_response(401)
    answer.send_header("WWW-Authenticate", f'Bearer realm="{made.address}/token",service="s",scope="pull"')
    answer.send_header("Content-Length", "0")
    answer.end_headers()
    return True


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def layer(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def push(registry: Site, *layers: bytes, kind: str = TAR, architecture: str = ARCHITECTURE) -> str:
    """Put an image behind an index, as build tools do; its URI."""
    listed = [{"mediaType": kind, "digest": digest_of(content), "size": len(content)} for content in layers]
    for content in layers:
        registry.files[f"/v2/org/model/blobs/{digest_of(content)}"] = content
    manifest = json.dumps({"layers": listed}).encode()
    registry.files[f"/v2/org/model/manifests/{digest_of(manifest)}"] = manifest
    entry: Any = {"digest": digest_of(manifest), "platform": {"os": "linux", "architecture": architecture}}
    unknown = {"digest": "sha256:0", "platform": {"os": "unknown", "architecture": "unknown"}}
    registry.files["/v2/org/model/manifests/v1"] = json.dumps(
        {"mediaType": INDEX, "manifests": [unknown, entry]}
    ).encode()
    return f"oci://{registry.address.partition('://')[2]}/org/model:v1"


def bring(uri: str, folder: Path, **environment: str) -> tuple[int, str]:
    message = folder / "termination-log"
    variables = {"KSERVE_OCI_INSECURE_REGISTRY": "true", "TERMINATION_MESSAGE_PATH": str(message), **environment}
    status = run([uri, str(folder / "model")], variables)
    return status, message.read_text() if message.exists() else ""


def test_models_of_all_layers(registry: Site, tmp_path: Path) -> None:
    base = layer({"etc/passwd": b"x", "models/config.json": b"{}", "models/old.bin": b"gone"})
    upper = layer({"models/deep/model.bin": b"weights", "models/.wh.old.bin": b""})
    assert bring(push(registry, base, upper), tmp_path) == (0, "")
    found = {path.name: path.read_bytes() for path in (tmp_path / "model").rglob("*") if path.is_file()}
    assert found == {"config.json": b"{}", "model.bin": b"weights"}


def test_the_docker_config_gets_the_token(registry: Site, tmp_path: Path) -> None:
    uri = push(registry, layer({"models/m": b"1"}))
    host, login = uri.split("/")[2], base64.b64encode(b"me:secret").decode()
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"auths": {host: {"auth": login}}}))
    assert bring(uri, tmp_path, KSERVE_OCI_DOCKER_CONFIG=str(config))[0] == 0
    asked = [headers for path, headers in registry.requests if path.startswith("/token")]
    assert [headers["authorization"] for headers in asked] == [f"Basic {login}"]


def test_a_layer_that_is_not_what_its_digest_says(registry: Site, tmp_path: Path) -> None:
    content = layer({"models/m": b"1"})
    uri = push(registry, content)
    registry.files[f"/v2/org/model/blobs/{digest_of(content)}"] = content[:-1] + b"x"
    status, message = bring(uri, tmp_path)
    assert status == 6
    assert "sha256" in message
    assert not (tmp_path / "model").exists()


def docker_config(folder: Path, **logins: bytes) -> dict[str, str]:
    config = folder / "config.json"
    auths = {host: {"auth": base64.b64encode(login).decode()} for host, login in logins.items()}
    config.write_text(json.dumps({"auths": auths}))
    return {"KSERVE_OCI_DOCKER_CONFIG": str(config)}


class TestWhereTheLoginGoes:
    """The registry asks for its login to be sent to another host, which also speaks TLS."""

    @pytest.fixture
    def secure(self, tmp_path: Path) -> Iterator[tuple[Site, Site, dict[str, str]]]:
        ca = tmp_path / "ca"
        ca.mkdir()
        context = private_ca(ca)
        with site(context) as registry, site(context) as elsewhere:
            registry.spoil = lambda answer: guard(elsewhere, answer)
            elsewhere.files["/token"] = b'{"token": "let-me-in"}'
            trusted = {"CA_BUNDLE_CONFIGMAP_NAME": "roots", "CA_BUNDLE_VOLUME_MOUNT_POINT": str(ca)}
            yield registry, elsewhere, {**trusted, "KSERVE_OCI_INSECURE_REGISTRY": "false"}

    def test_not_to_another_host(self, secure: Any, tmp_path: Path) -> None:
        registry, elsewhere, variables = secure
        uri = push(registry, layer({"models/m": b"1"}))
        config = docker_config(tmp_path, **{uri.split("/")[2]: b"me:secret"})
        status, message = bring(uri, tmp_path, **variables, **config)
        assert status == 4
        assert "another host" in message
        assert elsewhere.requests == []

    def test_to_a_host_that_is_configured(self, secure: Any, tmp_path: Path) -> None:
        registry, elsewhere, variables = secure
        uri = push(registry, layer({"models/m": b"1"}))
        config = docker_config(tmp_path, **{uri.split("/")[2]: b"me:secret"})
        named = {"KSERVE_OCI_TOKEN_HOSTS": elsewhere.address.removeprefix("https://")}
        assert bring(uri, tmp_path, **variables, **config, **named) == (0, "")
        sent = f"Basic {base64.b64encode(b'me:secret').decode()}"
        assert [headers.get("authorization") for _, headers in elsewhere.requests] == [sent]

    def test_a_host_with_a_login_of_its_own_gets_that(self, secure: Any, tmp_path: Path) -> None:
        registry, elsewhere, variables = secure
        uri = push(registry, layer({"models/m": b"1"}))
        both = {uri.split("/")[2]: b"me:secret", elsewhere.address.removeprefix("https://"): b"me:there"}
        assert bring(uri, tmp_path, **variables, **docker_config(tmp_path, **both)) == (0, "")
        sent = f"Basic {base64.b64encode(b'me:there').decode()}"
        assert [headers.get("authorization") for _, headers in elsewhere.requests] == [sent]

    def test_without_a_login_any_host_may_give_a_token(self, secure: Any, tmp_path: Path) -> None:
        registry, elsewhere, variables = secure
        assert bring(push(registry, layer({"models/m": b"1"})), tmp_path, **variables) == (0, "")
        assert [headers.get("authorization") for _, headers in elsewhere.requests] == [None]

    def test_never_without_tls(self, secure: Any, tmp_path: Path) -> None:
        registry, _, variables = secure
        uri = push(registry, layer({"models/m": b"1"}))
        with site() as plain:
            registry.spoil = lambda answer: guard(plain, answer)
            host = plain.address.removeprefix("http://")
            config = docker_config(tmp_path, **{uri.split("/")[2]: b"me:secret", host: b"me:there"})
            status, message = bring(uri, tmp_path, **variables, **config, KSERVE_OCI_TOKEN_HOSTS=host)
            assert (status, plain.requests) == (4, [])
            assert "without TLS" in message

    def test_a_login_for_one_port_is_for_no_other(self, registry: Site, tmp_path: Path) -> None:
        uri = push(registry, layer({"models/m": b"1"}))
        assert bring(uri, tmp_path, **docker_config(tmp_path, **{"127.0.0.1": b"me:secret"})) == (0, "")
        sent = {headers.get("authorization") for _, headers in registry.requests}
        assert sent == {None, "Bearer let-me-in"}


def test_a_challenge_without_an_end_takes_no_longer_than_others() -> None:
    def read(size: int) -> None:
        read_as = read_challenge("a" * size + ' realm="https://r/",service="s"')
        assert read_as == {"realm": "https://r/", "service": "s"}

    assert_grows_as_its_input(read, 2_000)


def test_a_manifest_that_is_not_what_its_digest_says(registry: Site, tmp_path: Path) -> None:
    push(registry, layer({"models/m": b"1"}))
    named = digest_of(b"what was pinned")
    registry.files[f"/v2/org/model/manifests/{named}"] = registry.files["/v2/org/model/manifests/v1"]
    uri = f"oci://{registry.address.removeprefix('http://')}/org/model@{named}"
    status, message = bring(uri, tmp_path)
    assert status == 6
    assert "sha256" in message


@pytest.mark.parametrize(
    "manifest",
    [
        b"[]",
        b"{",
        b"[" * 100_000,
        b'{"layers": {}}',
        b'{"layers": [1]}',
        b'{"layers": [{"mediaType": "x", "digest": "sha256:../../x"}]}',
        b'{"layers": [{"mediaType": "x", "digest": "sha512:00"}]}',
        b" " * (5 << 20),
    ],
)
def test_manifests_that_are_none(registry: Site, tmp_path: Path, manifest: bytes) -> None:
    uri = push(registry, layer({"models/m": b"1"}))
    registry.files["/v2/org/model/manifests/v1"] = manifest
    assert bring(uri, tmp_path)[0] == 6
    assert not (tmp_path / "model").exists()


def zstd_layer(members: dict[str, bytes]) -> bytes:
    library = zstd()
    assert library is not None
    compressed: bytes = library.compress(gzip.decompress(layer(members)))
    return compressed


def test_a_layer_compressed_with_zstd(registry: Site, tmp_path: Path) -> None:
    uri = push(registry, zstd_layer({"models/m": b"1"}), kind=TAR.replace("gzip", "zstd"))
    assert bring(uri, tmp_path) == (0, "")
    assert (tmp_path / "model" / "m").read_bytes() == b"1"


def test_without_a_library_for_zstd_nothing_is_downloaded(
    registry: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = push(registry, layer({"models/m": b"1"}), zstd_layer({"models/n": b"1"}), kind=TAR.replace("gzip", "zstd"))
    for module in ZSTD_MODULES:
        monkeypatch.setitem(sys.modules, module, None)
    status, message = bring(uri, tmp_path)
    assert status == 8
    assert "isvc[oci]" in message
    assert not any("/blobs/" in path for path, _ in registry.requests)


@pytest.mark.parametrize(
    ("image", "status", "word"),
    [
        ({"layers": [layer({"weights/m": b"1"})]}, 3, "/models"),
        ({"layers": [layer({"models/../../m": b"1"})]}, 6, "outside"),
        ({"layers": [layer({"models/m": b"1"})], "architecture": "pdp11"}, 3, "not made for"),
    ],
)
def test_images_that_cannot_be_used(registry: Site, tmp_path: Path, image: Any, status: int, word: str) -> None:
    found, message = bring(push(registry, *image.pop("layers"), **image), tmp_path)
    assert found == status
    assert word in message
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("uri", "image"),
    [
        ("oci://host/model", Image("host", "model", "latest")),
        ("oci://host:5000/org/model:v1", Image("host:5000", "org/model", "v1")),
        ("oci://host/org/model:v1@sha256:ab", Image("host", "org/model", "sha256:ab")),
    ],
)
def test_addresses(uri: str, image: Image) -> None:
    assert parse(uri) == image
