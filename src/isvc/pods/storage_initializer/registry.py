"""A container registry's HTTP interface: manifests, blobs, and the token that most registries want.

A registry is trusted with its own login and with nothing else. What it sends is compared with the digest that names it;
where it asks for the login to be sent is followed only to itself, or to hosts that it is known or configured to use.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import ssl
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError
from urllib.parse import SplitResult, urlencode, urlsplit

from isvc.pods.storage_initializer.remote import Digest, RemoteFile
from isvc.pods.storage_initializer.web import Web, WebFile, tls_context
from isvc.pods.storage_initializer.web_policy import origin
from isvc.pods.stores.errors import Damaged, Denied
from isvc.pods.stores.settings import Settings
from isvc.pods.stores.tls import accept_any

DOCKER_CONFIG: Final = "/mnt/oci-fetch-auth/config.json"
INDEXES: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFESTS: Final = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
LARGEST_MANIFEST: Final = 4 << 20
# Registries whose tokens come from another host of the same owner.
TOKEN_HOSTS: Final = {
    "registry-1.docker.io": "auth.docker.io",
    "index.docker.io": "auth.docker.io",
    "registry.gitlab.com": "gitlab.com",
}
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")


class Blob(NamedTuple):
    media_type: str
    digest: str
    size: int | None

    @classmethod
    def decode(cls, document: Any) -> Blob:
        match document:
            case {"mediaType": str(kind), "digest": str(digest)} if _DIGEST.fullmatch(digest):
                size = document.get("size")
                return cls(kind, digest, size if isinstance(size, int) and size >= 0 else None)
        raise Damaged("the image's manifest lists a layer without media type or sha256 digest")


class Registry:
    def __init__(self, host: str, repository: str, settings: Settings) -> None:
        insecure = settings.flag("KSERVE_OCI_INSECURE_REGISTRY")
        self.host = host
        self.web = Web(accept_any(ssl.create_default_context()) if insecure else tls_context(settings))
        self.base = f"{'http' if insecure else 'https'}://{host}/v2/{repository}"
        self._logins = _read_logins(Path(settings.get("KSERVE_OCI_DOCKER_CONFIG", DOCKER_CONFIG)))
        self._token_hosts = {TOKEN_HOSTS.get(host, ""), *settings.patterns("KSERVE_OCI_TOKEN_HOSTS")}
        login = self._logins.get(host, "")
        self.authorization = f"Basic {login}" if login else ""

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": self.authorization} if self.authorization else {}

    def manifest(self, reference: str) -> dict[str, Any]:
        """Returns a manifest or an index of them, which is what its digest says if the reference is one."""
        digest = _DIGEST.fullmatch(reference)
        if ":" in reference and not digest:
            raise Damaged(f"{reference} is no sha256 digest")
        url = f"{self.base}/manifests/{reference}"
        accept = {"Accept": ", ".join((*INDEXES, *MANIFESTS))}
        try:
            content = self.web.read(url, {**self.headers, **accept}, LARGEST_MANIFEST)
        except Denied as error:
            if not self._get_token(error):
                raise
            content = self.web.read(url, {**self.headers, **accept}, LARGEST_MANIFEST)
        if digest and hashlib.sha256(content).hexdigest() != digest[1]:
            raise Damaged(f"{url}: its sha256 is not the one that names it")
        try:
            document = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise Damaged(f"{url}: the registry's answer is no JSON") from error
        if not isinstance(document, dict):
            raise Damaged(f"{url}: the registry's answer is no manifest")
        return document

    def file(self, blob: Blob) -> RemoteFile:
        digest = Digest.sha256(bytes.fromhex(blob.digest.removeprefix("sha256:")))
        file = WebFile(self.web, f"{self.base}/blobs/{blob.digest}", self.headers, digest)
        return RemoteFile("layer", file.open, blob.size, digest.expected.hex())

    def _get_token(self, refused: Denied) -> bool:
        """Gets a token, also as a stranger: most registries refuse at first and say where to get one."""
        answer = refused.__cause__
        challenge = answer.headers.get("WWW-Authenticate", "") if isinstance(answer, HTTPError) else ""
        asked = read_challenge(challenge)
        if not challenge.lower().startswith("bearer ") or "realm" not in asked:
            return False
        realm = urlsplit(asked["realm"])
        login = self._login_for(realm)
        query = urlencode([(name, asked[name]) for name in ("service", "scope") if name in asked])
        url = realm._replace(query="&".join(filter(None, (realm.query, query))), fragment="").geturl()
        given = self.web.json(url, {"Authorization": f"Basic {login}"} if login else {})
        token = (given.get("token") or given.get("access_token")) if isinstance(given, dict) else None
        if not isinstance(token, str):
            raise Denied(f"{realm.hostname} gave no token")
        self.authorization = f"Bearer {token}"
        return True

    def _login_for(self, realm: SplitResult) -> str:
        """Returns what to show at the place that gives tokens; a place that must not see the login is refused."""
        if origin(realm.geturl()) == origin(self.base):
            return self._logins.get(self.host, "")
        if realm.scheme != "https":
            raise Denied(f"{self.host} asks for a token to be fetched from {realm.netloc} without TLS")
        if realm.netloc in self._token_hosts:
            return self._logins.get(realm.netloc, "") or self._logins.get(self.host, "")
        if not self._logins.get(self.host, ""):
            return ""
        if own := self._logins.get(realm.netloc, ""):
            return own
        raise Denied(
            f"{self.host} asks for its login to be sent to {realm.netloc}, another host; "
            "if that is right, name the host in KSERVE_OCI_TOKEN_HOSTS"
        )


def read_challenge(text: str) -> dict[str, str]:
    """Returns the parameters of a challenge; a name begins where a word does, so that long ones are read once."""
    return dict(re.findall(r'\b(\w+)="([^"]*)"', text))


def _read_logins(config: Path) -> dict[str, str]:
    """Returns a login for each registry, as HTTP sends it, of the docker config that the pod has mounted.

    One for one port is for no other.
    """
    try:
        entries = json.loads(config.read_text())["auths"].items()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return {_host(name): login for name, entry in entries if (login := _login(entry))}


def _host(name: str) -> str:
    """Returns the host in `host:port`, `https://host` or `https://host/v1/`, as docker writes them."""
    return name.removeprefix("https://").removeprefix("http://").partition("/")[0]


def _login(entry: Any) -> str:
    if isinstance(entry, dict) and entry.get("auth"):
        return str(entry["auth"])
    if isinstance(entry, dict) and entry.get("username"):
        return base64.b64encode(f"{entry['username']}:{entry.get('password', '')}".encode()).decode()
    return ""
