"""Tokens of service accounts for a pod's volumes, and how its programs find the API server with them.

On a cluster they look in `/var/run/secrets/kubernetes.io/serviceaccount`, which is a folder of the pod's here. So each
container that mounts it has a kubeconfig as well, in `KUBECONFIG`, which nearly every client reads.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from isvc.kube.errors import NotFound
from isvc.kube.objects import Object, dig, name_of, namespace_of, uid_of
from isvc.kube.resource import PODS, SERVICE_ACCOUNTS
from isvc.kube.timestamps import parse_timestamp
from isvc.toolkit.client import Client

ACCOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_DEFAULT_SECONDS: Final = 3600
_RENEWED_AFTER: Final = 0.8  # of its lifetime, as a kubelet does it


class Wanted(NamedTuple):
    """What a volume asks for: for whom a token is meant (the API server, if nobody is named) and how long it lasts."""

    audience: str
    seconds: int

    @classmethod
    def by(cls, source: Object) -> Wanted:
        return cls(source.get("audience") or "", source.get("expirationSeconds") or _DEFAULT_SECONDS)


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    expires: datetime

    def renewal_in(self, now: datetime) -> float:
        return (self.expires - now).total_seconds() * _RENEWED_AFTER


def wanted_tokens(pod: Object) -> set[Wanted]:
    return {Wanted.by(source) for source in _sources(pod)}


def _sources(pod: Object) -> Iterator[Object]:
    for volume in dig(pod, "spec", "volumes") or ():
        for source in dig(volume, "projected", "sources") or ():
            if (found := source.get("serviceAccountToken")) is not None:
                yield found


async def request_tokens(pod: Object, client: Client) -> dict[Wanted, Token]:
    """Returns tokens that end with the pod; none where its service account does not exist."""
    account = dig(pod, "spec", "serviceAccountName") or "default"
    path = SERVICE_ACCOUNTS.path(namespace_of(pod), account, "token")
    bound = PODS.typed({"name": name_of(pod), "uid": uid_of(pod)})
    tokens = {}
    for each in wanted_tokens(pod):
        spec: Object = {"expirationSeconds": each.seconds, "boundObjectRef": bound}
        if each.audience:
            spec["audiences"] = [each.audience]
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        with contextlib.suppress(NotFound):
            status = (await client.request("POST", path, body=body))["status"]
            tokens[each] = Token(status["token"], parse_timestamp(status["expirationTimestamp"]))
    return tokens


def api_server_env(server: str) -> dict[str, str]:
    """Returns where programs in pods look for the address of the API server."""
    address = urlsplit(server)
    port = str(address.port or 443)
    return {
        "KUBERNETES_SERVICE_HOST": address.hostname or "",
        "KUBERNETES_SERVICE_PORT": port,
        "KUBERNETES_SERVICE_PORT_HTTPS": port,
    }


def write_kubeconfig(target: Path, account: Path, env: Mapping[str, str], namespace: str) -> None:
    """Writes a kubeconfig that reads the token anew whenever it is renewed; JSON is YAML, too."""
    server = f"https://{env['KUBERNETES_SERVICE_HOST']}:{env['KUBERNETES_SERVICE_PORT']}"
    cluster = {"server": server, "certificate-authority": str(account / "ca.crt")}
    context = {"cluster": "local", "user": "pod", "namespace": namespace}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": cluster}],
        "users": [{"name": "pod", "user": {"tokenFile": str(account / "token")}}],
        "contexts": [{"name": "local", "context": context}],
        "current-context": "local",
    }
    target.write_text(json.dumps(config))
