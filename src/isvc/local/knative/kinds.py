"""Kinds, labels and annotations of Knative Serving."""

from __future__ import annotations

from typing import Final

from isvc.kube.objects import Key
from isvc.kube.resource import Resource

_GROUP: Final = "serving.knative.dev"
CONFIGURATIONS: Final = Resource(_GROUP, "v1", "configurations", "Configuration")
REVISIONS: Final = Resource(_GROUP, "v1", "revisions", "Revision")
ROUTES: Final = Resource(_GROUP, "v1", "routes", "Route")

SERVICE: Final = f"{_GROUP}/service"
SERVICE_UID: Final = f"{_GROUP}/serviceUID"
CONFIGURATION: Final = f"{_GROUP}/configuration"
CONFIGURATION_UID: Final = f"{_GROUP}/configurationUID"
CONFIGURATION_GENERATION: Final = f"{_GROUP}/configurationGeneration"
REVISION: Final = f"{_GROUP}/revision"
REVISION_UID: Final = f"{_GROUP}/revisionUID"
ROUTE: Final = f"{_GROUP}/route"

LOCAL_GATEWAY: Final = Key("istio-system", "knative-local-gateway")  # for names of the cluster


def deployment_name(revision: str) -> str:
    return f"{revision}-deployment"
