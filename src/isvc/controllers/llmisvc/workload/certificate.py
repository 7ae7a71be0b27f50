"""The certificate with which model servers and schedulers of a service speak TLS inside the cluster.

It signs itself and names the service's Services and the addresses of its pods. It is made anew when it lacks one of
them or is about to expire; a name or address too many does no harm.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Final

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.scheduler.features import has_tokenizer
from isvc.controllers.llmisvc.workload.metadata import child_metadata
from isvc.engine.plan import Child, ChildKey, Late
from isvc.kube.gourl import parse_address
from isvc.kube.objects import Object, annotations_of, dig, labels_of
from isvc.kube.resource import SECRETS, SERVICES
from isvc.kube.timestamps import timestamp
from isvc.serving.llm import labels, names
from isvc.serving.thirdparty import INFERENCE_POOLS
from isvc.wire.x509.check import Certified, is_key, read_certificate
from isvc.wire.x509.issue import Pair, issue_self_signed, new_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

LIFE: Final = timedelta(days=3650)
_MARGIN: Final = LIFE / 5
"""By this much it is renewed before its time; it stays valid as much longer."""


def certificate_secret(observed: Observed) -> Child:
    """Returns the Secret with the live certificate, if that will do, or else with one that is issued for it."""
    live = observed.live.get((SECRETS, names.certificates(observed.name)))
    if live is None or _is_due(observed, live):
        services = tuple(ChildKey(SERVICES, name, observed.namespace) for name in _services(observed))
        late = Late(services, partial(_issue, observed, cache(new_key)))
        return Child(SECRETS, _manifest(observed, _renewal(observed)), late=late)
    data = {key: live["data"][key] for key in ("tls.key", "tls.crt", "ca.crt") if live["data"].get(key)}
    return Child(SECRETS, {**_manifest(observed, _expiry(observed, live) or _renewal(observed)), "data": data})


def renew_in(observed: Observed, secret: Child) -> float:
    """Returns the seconds until the certificate is due, going by the annotation of its Secret."""
    expiry = _time(_expiry(observed, secret.manifest))
    left = expiry - datetime.fromisoformat(observed.now) if expiry else timedelta()
    return max(left.total_seconds(), 0.0)


def _manifest(observed: Observed, expiry: str) -> Object:
    name, (written, *_) = names.certificates(observed.name), observed.config.scheduler.expiration_annotations
    metadata = child_metadata(observed, name, labels.labels(observed.name, labels.WORKLOAD), {written: expiry})
    return SECRETS.manifest(metadata, type="kubernetes.io/tls")


def _services(observed: Observed) -> Iterator[str]:
    """Yields the Services that are called by their addresses, too."""
    yield names.workload_service(observed.name)
    if has_tokenizer(observed.scheduler):
        yield names.tokenizer(observed.name)


def _issue(observed: Observed, key: Callable[[], EllipticCurvePrivateKey], services: Sequence[Object]) -> Object:
    hosts, now = _hosts(observed, services), datetime.fromisoformat(observed.now)
    return {"data": _data(issue_self_signed(hosts, now, LIFE + _MARGIN, key()))}


def _hosts(observed: Observed, services: Sequence[Object] = ()) -> tuple[str, ...]:
    """Returns DNS names, then addresses, each sorted. These Services were created since the others were observed."""
    return *sorted(set(_names(observed))), *sorted(set(_addresses(observed, services)))


def _names(observed: Observed) -> Iterator[str]:
    yield "localhost"  # the routing sidecar calls the server beside it
    for service in filter(None, (*_services(observed), _endpoint_picker(observed))):
        yield f"{service}.{observed.namespace}.svc"
        yield f"{service}.{observed.namespace}.svc.cluster.local"


def _endpoint_picker(observed: Observed) -> str:
    """Returns the Service of the scheduler: that of the pool to make, or of the one that exists."""
    existing = observed.network.pools.get((INFERENCE_POOLS, observed.users_pool))
    wanted = observed.scheduler.pool if observed.scheduler else None
    spec = existing.get("spec") if existing else wanted and wanted.spec
    return str(dig(spec, "endpointPickerRef", "name") or "")


def _addresses(observed: Observed, services: Sequence[Object]) -> Iterator[str]:
    yield "127.0.0.1"
    for pod in filter(_is_called_by_address, observed.pods):
        status = pod.get("status") or {}
        yield from _valid([status.get("podIP") or "", *(entry.get("ip", "") for entry in status.get("podIPs") or ())])
    known = (live for (resource, _), live in observed.live.items() if resource == SERVICES)
    for service in filter(_is_called_by_address, (*known, *services)):
        spec = service.get("spec") or {}
        yield from _valid([spec.get("clusterIP") or "", *(spec.get("clusterIPs") or ())])


def _is_called_by_address(obj: Object) -> bool:
    return labels_of(obj).get(labels.COMPONENT) != labels.SCHEDULER  # that is called by its Service's name alone


def _valid(addresses: list[str]) -> Iterator[str]:
    return filter(None, map(_canonical, addresses))


@lru_cache(maxsize=10_000)
def _canonical(address: str) -> str:
    """Writes an address as certificates do; empty for a headless Service's None, or that of a pod that runs nowhere."""
    return str(parse_address(address) or "")


def _is_due(observed: Observed, secret: Object) -> bool:
    now, expiry = datetime.fromisoformat(observed.now), _time(_expiry(observed, secret))
    if expiry is not None and now > expiry:
        return True
    data = secret.get("data") or {}
    read = _read(data.get("tls.crt") or "", data.get("tls.key") or "")
    return read is None or now > read.expires or not read.hosts.issuperset(_hosts(observed))


@lru_cache(maxsize=1024)
def _read(certificate: str, key: str) -> Certified | None:
    """Returns what a certificate is good for; None when it or its key cannot be read."""
    try:
        return read_certificate(base64.b64decode(certificate)) if is_key(base64.b64decode(key)) else None
    except ValueError:
        return None


def _expiry(observed: Observed, secret: Object) -> str:
    annotations = annotations_of(secret)
    keys = observed.config.scheduler.expiration_annotations
    return next((annotations[key] for key in keys if key in annotations), "")


def _renewal(observed: Observed) -> str:
    return timestamp(datetime.fromisoformat(observed.now) + LIFE - _MARGIN)


def _time(written: str) -> datetime | None:
    """Returns None where somebody wrote something else into the annotation: then the certificate's own date counts."""
    try:
        return datetime.fromisoformat(written)
    except ValueError:
        return None


def _data(pair: Pair) -> dict[str, str]:
    certificate = base64.b64encode(pair.certificate).decode()
    # It signs itself, so it is its own authority.
    return {"tls.key": base64.b64encode(pair.key).decode(), "tls.crt": certificate, "ca.crt": certificate}
