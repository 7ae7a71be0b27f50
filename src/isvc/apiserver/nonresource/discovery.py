"""What this server serves, in the two ways that clients ask: group by group, or all at once (aggregated)."""

from __future__ import annotations

import base64
import hashlib
import re

from isvc.apiserver.http.media import clauses, not_acceptable
from isvc.apiserver.resources.description import READ_WRITE, Description, Subresource
from isvc.apiserver.resources.registry import Registry
from isvc.kube.objects import Object
from isvc.kube.schemas import RELEASE

VERSION: Object = {
    "major": "1",
    "minor": "35",
    "emulationMajor": "1",
    "emulationMinor": "35",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "34",
    "gitVersion": RELEASE,
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "cpython",
    "platform": "linux/amd64",
}
AGGREGATED = "APIGroupDiscoveryList"
AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def groups(registry: Registry) -> dict[str, list[str]]:
    """Returns the versions of each group, newest first."""
    found: dict[str, list[str]] = {}
    for description in registry:
        versions = found.setdefault(description.resource.group, [])
        if description.resource.version not in versions:
            versions.append(description.resource.version)
    return {group: sorted(versions, key=version_rank, reverse=True) for group, versions in found.items()}


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Ranks versions as Kubernetes does: v10 > v2 > v1 > v1beta2 > v1beta1 > v1alpha1 > foo."""
    match = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if not match:
        return (0, 0, 0, version)
    stability = {None: 3, "beta": 2, "alpha": 1}[match[2]]
    return (stability, int(match[1]), int(match[3] or 0), "")


def core_versions(host: str) -> Object:
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
    }


def group_list(registry: Registry) -> Object:
    items = [group(registry, name) for name in groups(registry) if name]
    for item in items:
        del item["kind"], item["apiVersion"]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": items}


def group(registry: Registry, name: str) -> Object:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in groups(registry)[name]]
    return {"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": versions, "preferredVersion": versions[0]}


def resource_list(registry: Registry, group: str, version: str) -> Object:
    resources = []
    for description in sorted(_of(registry, group, version), key=lambda each: each.resource.plural):
        resources += _resources(description)
    api_version = f"{group}/{version}" if group else version
    kind: Object = {"kind": "APIResourceList"}
    if group:
        kind["apiVersion"] = "v1"
    return {**kind, "groupVersion": api_version, "resources": resources}


def _of(registry: Registry, group: str, version: str) -> list[Description]:
    return [each for each in registry if (each.resource.group, each.resource.version) == (group, version)]


def _resources(description: Description) -> list[Object]:
    resource = description.resource
    main: Object = {
        "name": resource.plural,
        "singularName": description.singular_name,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(description),
    }
    if "list" in description.verbs:
        main["storageVersionHash"] = _storage_hash(description)
    entries = [main | _further_names(description)]
    for each in _subresources(description):
        entry: Object = {
            "name": f"{resource.plural}/{each.name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": each.kind,
            "verbs": list(each.verbs),
        }
        if each.group_version:
            entry["group"], entry["version"] = each.group_version
        entries.append(entry)
    return entries


def _further_names(description: Description) -> Object:
    """Returns the short names of a resource, and the categories that it is in, where it has any."""
    names = {"shortNames": list(description.short_names), "categories": list(description.categories)}
    return {field: found for field, found in names.items() if found}


def _verbs(description: Description) -> list[str]:
    """Clients do not care about the order, but Kubernetes has one for custom kinds."""
    if description.custom:
        return ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    return list(description.verbs)


def _storage_hash(description: Description) -> str:
    """Returns a hash that changes when objects are stored in another version."""
    stored = "/".join(description.stored.gvk)
    return base64.b64encode(hashlib.sha256(stored.encode()).digest()[:8]).decode()


def _subresources(description: Description) -> list[Subresource]:
    found = list(description.subresources)
    if description.scale:
        found.append(Subresource("scale", "Scale", READ_WRITE, ("autoscaling", "v1")))
    if description.status:
        found.append(Subresource("status", description.resource.kind, READ_WRITE))
    return found[::-1] if description.custom else sorted(found)


def wants_aggregated(accept: str) -> bool:
    """Returns whether a client prefers the aggregated form.

    Raises NotAcceptable if it takes only a version that is gone.
    """
    if AGGREGATED not in accept:
        return False
    for _, options in clauses(accept):
        if not options.get("as"):
            return False
        if (options["as"], options.get("g"), options.get("v")) == (AGGREGATED, "apidiscovery.k8s.io", "v2"):
            return True
    raise not_acceptable()


def aggregate(registry: Registry, core: bool) -> Object:
    """Returns the apidiscovery.k8s.io/v2 document of the core group, or of all others."""
    items = []
    for name, versions in groups(registry).items():
        if bool(name) == core:
            continue
        items.append(
            {
                "metadata": {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None},
                "versions": [_aggregated_version(registry, name, version) for version in versions],
            }
        )
    return {"kind": AGGREGATED, "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated_version(registry: Registry, group: str, version: str) -> Object:
    found = sorted(_of(registry, group, version), key=lambda each: each.resource.plural)
    return {"version": version, "resources": [_aggregated_resource(each) for each in found], "freshness": "Current"}


def _aggregated_resource(description: Description) -> Object:
    resource = description.resource
    entry: Object = {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": description.singular_name,
        "verbs": _verbs(description),
    }
    subresources = []
    for each in _subresources(description):
        kind = _kind(*(each.group_version or (resource.group, resource.version)), each.kind)
        subresources.append({"subresource": each.name, "responseKind": kind, "verbs": list(each.verbs)})
    return entry | _further_names(description) | ({"subresources": subresources} if subresources else {})


def _kind(group: str, version: str, kind: str) -> Object:
    return {"group": group, "version": version, "kind": kind}
