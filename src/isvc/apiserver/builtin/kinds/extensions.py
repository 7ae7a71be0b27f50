"""admissionregistration.k8s.io, apiextensions.k8s.io and apiregistration.k8s.io: how the API is extended."""

from __future__ import annotations

from typing import Any, Final

from isvc.apiserver.builtin import prepare
from isvc.apiserver.builtin.kind import Kind
from isvc.apiserver.builtin.validation import extensions as rules
from isvc.apiserver.crd.definition import Definitions
from isvc.apiserver.tables import access
from isvc.kube.resource import API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS, Resource


def _admission(plural: str, name: str, **record: Any) -> Kind:
    resource = Resource("admissionregistration.k8s.io", "v1", plural, name, namespaced=False)
    return Kind(resource=resource, categories=("api-extensions",), generation=True, version_required=True, **record)


_WEBHOOKS: Final[dict[str, Any]] = {"columns": access.WEBHOOKS, "check": rules.webhooks}
KINDS: Final = (
    _admission("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", **_WEBHOOKS),
    _admission(
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        columns=access.POLICIES,
        status=True,
        check=rules.policy,
    ),
    _admission(
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        columns=access.POLICY_BINDINGS,
        check=rules.binding,
    ),
    _admission("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", **_WEBHOOKS),
    Kind(
        resource=CUSTOM_RESOURCE_DEFINITIONS,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        columns=access.DEFINITIONS,
        status=True,
        generation=True,
        version_required=True,
        strategy_class=Definitions,
    ),
    Kind(
        resource=API_SERVICES,
        categories=("api-extensions",),
        columns=access.API_SERVICES,
        names="path",
        status=True,
        version_required=True,
        on_create=prepare.api_service,
    ),
)
