"""Confidential models: files that are encrypted as JWE (RFC 7516) are decrypted with a key from the pod's enclave.

The Confidential Data Hub, which listens inside of a confidential container alone, gives the key away once the
container has proved what it is. Files are decrypted piece by piece, so that memory does not grow with them, and appear
only when they are authentic. Whatever is wrong, no model is better than ciphertext or a forgery in its place.
"""

from __future__ import annotations

import base64
import hmac
import http.client
import json
import logging
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from isvc.pods.stores.errors import Damaged, Denied, StorageError, Unreachable, need
from isvc.pods.stores.settings import Settings

log = logging.getLogger("isvc.storage-initializer")

DATA_HUB: Final = "http://127.0.0.1:8006"
SUFFIX: Final = ".jwe"
_MAGIC: Final = b"eyJ"  # the beginning of a header: {"
_RESOURCE: Final = re.compile(r"kbs:///([A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)")
_LONGEST_HEAD: Final = 1 << 16
_LONGEST_KEY: Final = 1 << 16
_PIECE: Final = 1 << 20  # of base64: a multiple of four
_SECONDS: Final = 30.0


def decrypt_folder(folder: Path, settings: Settings) -> None:
    """Decrypts what is encrypted in a folder, where the service is confidential."""
    if settings.get("CONFIDENTIAL_ENABLED").lower() != "true":
        return
    encrypted = [path for path in sorted(folder.rglob("*")) if _is_encrypted(path)]
    if encrypted:
        key = _key(settings)
        for path in encrypted:
            _decrypt_file(path, key)
    log.info("the service is confidential: %d files were decrypted", len(encrypted))


def _is_encrypted(path: Path) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return path.suffix.lower() == SUFFIX or file.read(len(_MAGIC)) == _MAGIC


def _key(settings: Settings) -> Any:
    """Returns the key that the service names, as JSON (a JWK), as base64, or as plain bytes."""
    resource = settings.get("CONFIDENTIAL_RESOURCE_ID")
    if not resource:
        raise StorageError("the service is confidential, but CONFIDENTIAL_RESOURCE_ID does not say with which key")
    named = _RESOURCE.fullmatch(resource)
    if not named or not all(part.strip(".") for part in named[1].split("/")):
        raise StorageError(f"{resource} is no address of a key: expected kbs:///repository/type/tag")
    content = _ask_data_hub(settings.get("CDH_ADDR", DATA_HUB), f"/cdh/resource/{named[1]}", resource)
    jwk = need("jwcrypto.jwk", "confidential")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return jwk.JWK(kty="oct", k=base64.urlsafe_b64encode(content).rstrip(b"=").decode())
    try:
        return jwk.JWK.from_json(text)
    except (ValueError, jwk.InvalidJWKValue):
        return jwk.JWK(kty="oct", k=text.strip().rstrip("="))


def _ask_data_hub(address: str, path: str, resource: str) -> bytes:
    """Goes past any proxy: what the hub answers is for nobody else."""
    hub = urlsplit(address)
    connection = http.client.HTTPConnection(hub.hostname or "", hub.port or 80, timeout=_SECONDS)
    try:
        connection.request("GET", hub.path.rstrip("/") + path)
        answer = connection.getresponse()
        content = answer.read(_LONGEST_KEY)
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(
            f"the key {resource} cannot be had: the Confidential Data Hub at {address} does not answer ({error}); "
            "is the pod a confidential container?"
        ) from error
    finally:
        connection.close()
    if answer.status != 200:
        raise Denied(f"the key {resource} cannot be had: the Confidential Data Hub answered {answer.status}")
    return content


class _Layout(NamedTuple):
    """A file in JWE's compact form: header, key, vector, ciphertext and tag, as base64 between dots."""

    protected: bytes
    header: dict[str, Any]
    encrypted_key: bytes
    vector: bytes
    start: int  # of the ciphertext in the file
    end: int
    tag: bytes


def _decrypt_file(path: Path, key: Any) -> None:
    target = path.with_suffix("") if path.suffix.lower() == SUFFIX else path
    fresh = path.with_name(f"{path.name}.decrypted")
    try:
        layout = _read_layout(path)
        content_key = _content_key(layout, key)
        with fresh.open("wb") as out:
            _decrypt(path, layout, content_key, out.write)
    except _wrong() as error:
        fresh.unlink(missing_ok=True)
        reason = str(error) or "it was changed, or the key is another"
        raise Damaged(f"{path.name} cannot be decrypted: {reason}") from error
    path.unlink()
    fresh.replace(target)


def _wrong() -> tuple[type[Exception], ...]:
    """Returns what is raised for a file that is no JWE, a key that does not fit, or content that is not authentic."""
    tag = need("cryptography.exceptions", "confidential").InvalidTag
    unwrap = need("cryptography.hazmat.primitives.keywrap", "confidential").InvalidUnwrap
    return ValueError, KeyError, TypeError, tag, unwrap, need("jwcrypto.common", "confidential").JWException


def _read_layout(path: Path) -> _Layout:
    with path.open("rb") as file:
        head = file.read(_LONGEST_HEAD).split(b".", 3)
        if len(head) < 4:
            raise ValueError("it is no JWE in compact form")
        protected, encrypted_key, vector, _ = head
        start = len(protected) + len(encrypted_key) + len(vector) + 3
        at = max(start, file.seek(0, os.SEEK_END) - _LONGEST_HEAD)
        file.seek(at)
        ciphertext, dot, tag = file.read().rpartition(b".")
        if not dot:
            raise ValueError("it is cut off")
    header = json.loads(_decode(protected))
    if header.get("zip") or header.get("crit"):
        raise ValueError("it is compressed, or has headers that have to be understood")
    end = at + len(ciphertext)
    return _Layout(protected, header, _decode(encrypted_key), _decode(vector), start, end, _decode(tag))


def _content_key(layout: _Layout, key: Any) -> bytes:
    """Returns the key of the content, unwrapped as the header says."""
    jwa, jwe = need("jwcrypto.jwa", "confidential").JWA, need("jwcrypto.jwe", "confidential")
    names = (layout.header["alg"], layout.header["enc"])
    if not set(names) <= set(jwe.default_allowed_algs):
        raise ValueError(f"it is encrypted by {' and '.join(map(str, names))}, which are not allowed")
    size = jwa.encryption_alg(names[1]).wrap_key_size
    unwrapped: bytes = jwa.keymgmt_alg(names[0]).unwrap(key, size, layout.encrypted_key, layout.header)
    return unwrapped


def _decrypt(path: Path, layout: _Layout, key: bytes, write: Callable[[bytes], Any]) -> None:
    ciphers = need("cryptography.hazmat.primitives.ciphers", "confidential")
    modes = need("cryptography.hazmat.primitives.ciphers.modes", "confidential")
    if layout.header["enc"].endswith("GCM"):
        mode = modes.GCM(layout.vector, layout.tag)
        decryptor = ciphers.Cipher(ciphers.algorithms.AES(key), mode).decryptor()
        decryptor.authenticate_additional_data(layout.protected)
        for piece in _ciphertext(path, layout):
            write(decryptor.update(piece))
        write(decryptor.finalize())
        return
    _authenticate(path, layout, key[: len(key) // 2])
    padding = need("cryptography.hazmat.primitives.padding", "confidential").PKCS7(128).unpadder()
    decryptor = ciphers.Cipher(ciphers.algorithms.AES(key[len(key) // 2 :]), modes.CBC(layout.vector)).decryptor()
    for piece in _ciphertext(path, layout):
        write(padding.update(decryptor.update(piece)))
    write(padding.update(decryptor.finalize()) + padding.finalize())


def _authenticate(path: Path, layout: _Layout, key: bytes) -> None:
    """Checks the tag of AES-CBC with HMAC (RFC 7518, 5.2), which is known before anything is decrypted."""
    code = hmac.new(key, layout.protected + layout.vector, f"sha{layout.header['enc'].rpartition('HS')[2]}")
    for piece in _ciphertext(path, layout):
        code.update(piece)
    code.update((8 * len(layout.protected)).to_bytes(8, "big"))
    if not hmac.compare_digest(code.digest()[: len(key)], layout.tag):
        raise ValueError


def _ciphertext(path: Path, layout: _Layout) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(layout.start)
        left = layout.end - layout.start
        while left:
            piece = file.read(min(_PIECE, left))
            left -= len(piece)
            yield _decode(piece)


def _decode(text: bytes) -> bytes:
    """base64url without its padding; raises ValueError for anything else."""
    text = text.strip()
    return base64.b64decode(text + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
