"""The copy of the administrator's CA certificates that downloads in a service's namespace trust."""

from __future__ import annotations

from typing import Final

from isvc.engine.plan import Child
from isvc.engine.policies import DATA
from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving.refused import Refused
from isvc.serving.storage.init_container import GLOBAL_CA_BUNDLE

FILE: Final = "cabundle.crt"


def ca_bundle_copy(name: str, source: Object | None, namespace: str, system_namespace: str) -> Child:
    """`source` is the ConfigMap of that name in the system namespace. All services of a namespace share the copy."""
    context = f"fails to get cabundle configmap for creating to user namespace: configmap {name}"
    if source is None:
        raise Refused(f"{context} does not exist in {system_namespace}")
    certificates = (source.get("data") or {}).get(FILE)
    if not certificates:
        raise Refused(f"{context} has no {FILE}")
    manifest = CONFIG_MAPS.manifest({"name": GLOBAL_CA_BUNDLE, "namespace": namespace}, data={FILE: certificates})
    return Child(CONFIG_MAPS, manifest, DATA, owned=False)
