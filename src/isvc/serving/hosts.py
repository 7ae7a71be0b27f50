"""Where a service is reached: host names, URLs and paths made from the templates in the ingress settings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from isvc.kube.names import DNS_LABEL
from isvc.kube.objects import Object, annotations_of, labels_of, namespace_of
from isvc.serving.config.sections import IngressConfig
from isvc.serving.refused import Refused
from isvc.serving.templates import Fields, TemplateError, render

CLUSTER_DOMAIN: Final = "cluster.local"
CLUSTER_LOCAL_DOMAIN: Final = "svc.cluster.local"
VISIBILITY: Final = "networking.kserve.io/visibility"

_PORT = re.compile(r":\d+$")


def is_subdomain(name: str) -> bool:
    """Returns whether it is a DNS subdomain as Kubernetes defines it."""
    return 0 < len(name) <= 253 and all(DNS_LABEL.fullmatch(part) for part in name.split("."))


def without_port(host: str) -> str:
    """Removes the port that an ingress domain may carry for use in URLs; routing rules may not have one."""
    return _PORT.sub("", host)


def domain_name(name: str, owner: Object, settings: IngressConfig) -> str:
    """Returns the public host of `name`, a service or a component of it; `owner` gives labels and annotations."""
    host = _fill_domain(name, owner, settings)
    if fault := _fault(without_port(host).removesuffix(".")):
        raise Refused(f'invalid domain name "{host}": url: Invalid value: {fault}')
    return host


def longest_label(name: str, owner: Object, settings: IngressConfig) -> int:
    """Returns the length of the longest part of a host, whether that is a valid one or not."""
    return max(map(len, _fill_domain(name, owner, settings).split(".")))


def _fill_domain(name: str, owner: Object, settings: IngressConfig) -> str:
    labels, annotations = (*labels_of(owner).items(),), (*annotations_of(owner).items(),)
    try:
        return _fill(settings.domain_template, name, namespace_of(owner), settings.ingress_domain, labels, annotations)
    except TemplateError as error:
        raise Refused(f"error rendering the domain template: {error}") from error


@lru_cache(maxsize=4096)
def _fill(
    template: str,
    name: str,
    namespace: str,
    domain: str,
    labels: tuple[tuple[str, str], ...],
    annotations: tuple[tuple[str, str], ...],
) -> str:
    """Returns the domain template filled in, which is asked for several times in each reconcile."""
    given = Fields(
        Name=name, Namespace=namespace, IngressDomain=domain, Annotations=dict(annotations), Labels=dict(labels)
    )
    return render(template, given)


def _fault(host: str) -> str:
    """Says what keeps a host from being a fully qualified domain name, in Kubernetes' words; "" if nothing does."""
    if not is_subdomain(host):
        return (
            f'"{host}": '
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        )
    if "." not in host:
        return f'"{host}": should be a domain with at least two segments separated by dots'
    long = next((label for label in host.split(".") if len(label) > 63), None)
    return f'"{long}": must be no more than 63 characters' if long else ""


def additional_hosts(host: str, settings: IngressConfig, domains: Sequence[str] | None = None) -> list[str]:
    """Returns the same subdomain under every additional ingress domain, those left out that make no valid host name.

    `domains` are those that the host may be under: the ingress domain, unless others are given.
    """
    known = [settings.ingress_domain] if domains is None else sorted(domains, key=len, reverse=True)
    subdomain = next((host.removesuffix(domain) for domain in known if host.endswith(domain)), "")
    if not subdomain:
        return []
    hosts = (subdomain + domain for domain in dict.fromkeys(settings.additional_ingress_domains or ()))
    return [other for other in hosts if other != host and is_subdomain(other)]


def url_path(name: str, namespace: str, settings: IngressConfig) -> str:
    """Returns the path of a service under the shared ingress domain, or "" where paths are not configured."""
    if not settings.path_template:
        return ""
    try:
        path = render(settings.path_template, Fields(Name=name, Namespace=namespace))
    except TemplateError as error:
        raise Refused(f"error rendering the url template: {error}") from error
    try:
        parts = urlsplit(path)
    except ValueError as error:
        raise Refused(f'invalid url path "{path}": {error}') from error
    if parts.scheme or parts.netloc:
        raise Refused(f'invalid url path "{path}": contains either a scheme or a host')
    if not path.startswith("/"):
        raise Refused(f'invalid url "{path}": invalid URI for request')
    return parts.path


def public_place(name: str, owner: Object, settings: IngressConfig) -> str:
    """Returns what follows the scheme in the URL of a service or graph: its host, or a shared one with a path."""
    host = domain_name(name, owner, settings)
    if settings.has_path_urls and not is_hidden(owner, settings):
        return settings.ingress_domain + url_path(name, namespace_of(owner), settings).removesuffix("/")
    return host


def service_host(name: str, namespace: str) -> str:
    """Returns the name of a Service inside the cluster."""
    return f"{name}.{namespace}.svc.{CLUSTER_DOMAIN}"


def is_cluster_local(service: Object, settings: IngressConfig) -> bool:
    """Returns whether a service stays inside the cluster: by its own label, or by the ingress domain."""
    return labels_of(service).get(VISIBILITY) == "cluster-local" or settings.ingress_domain == CLUSTER_LOCAL_DOMAIN


def is_hidden(service: Object, settings: IngressConfig) -> bool:
    """Returns whether a service gets no ingress: it stays inside the cluster, or nobody gets one."""
    return settings.disable_ingress_creation or is_cluster_local(service, settings)
