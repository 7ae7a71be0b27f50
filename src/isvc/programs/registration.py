"""What a webhook is, and what follows from a table of them: routes, manifests, and where the caBundle goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, Self, TypeAlias

from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS, Resource
from isvc.programs.options import Options
from isvc.serving.config.current import Configuration
from isvc.toolkit.cache import Reader
from isvc.toolkit.reads import Read
from isvc.toolkit.rotation import Targets
from isvc.toolkit.webhook import Admission, Conversion, Route
from isvc.toolkit.webhook.admission import AdmissionHandler
from isvc.toolkit.webhook.conversion import ConversionHandler
from isvc.webhooks.live_reads import Getter
from isvc.webhooks.model_caches import Lister


class Server(Getter, Lister, Protocol):
    """What handlers ask the API server itself."""


@dataclass(frozen=True, slots=True)
class WebhookContext:
    """What handlers are made of."""

    reader: Reader
    client: Server
    configuration: Configuration
    options: Options

    @classmethod
    def of(cls, reader: Reader, client: Server, options: Options) -> Self:
        return cls(reader, client, Configuration(reader, options.system_namespace), options)


class Action(StrEnum):
    MUTATE = "mutate"
    VALIDATE = "validate"


WRITES: Final = ("CREATE", "UPDATE")
MakeHandler: TypeAlias = Callable[[WebhookContext], AdmissionHandler]


@dataclass(frozen=True, slots=True)
class AdmissionWebhook:
    """One entry of a Mutating- or ValidatingWebhookConfiguration, and the handler behind it.

    `configuration` is the name of the object that lists the webhook; webhooks that share it form one object.
    """

    configuration: str
    name: str
    action: Action
    resource: Resource
    handler: MakeHandler
    reads: tuple[Read, ...] = ()
    operations: tuple[str, ...] = WRITES
    own_path: str = ""
    match_policy: str = ""
    reinvocation_policy: str = ""
    namespace_selector: Object | None = None
    object_selector: Object | None = None

    @property
    def path(self) -> str:
        """`/mutate-serving-kserve-io-v1beta1-inferenceservice`, unless it has one of its own."""
        group, kind = self.resource.group.replace(".", "-"), self.resource.kind.lower()
        return self.own_path or f"/{self.action}-{group}-{self.resource.version}-{kind}"

    @property
    def configuration_kind(self) -> str:
        prefix = "Mutating" if self.action is Action.MUTATE else "Validating"
        return f"{prefix}WebhookConfiguration"


@dataclass(frozen=True, slots=True)
class ConversionWebhook:
    """Converts the objects of these CRDs between their versions."""

    resources: tuple[Resource, ...]
    handler: ConversionHandler
    path: str = "/convert"


Webhook: TypeAlias = AdmissionWebhook | ConversionWebhook
ClientConfig: TypeAlias = Callable[[str], Object]
"""How the API server reaches a path: by URL or by Service, with the authority to trust."""


def routes(webhooks: Iterable[Webhook], context: WebhookContext) -> dict[str, Route]:
    """Returns the handler at each path."""
    return {
        webhook.path: Conversion(webhook.handler)
        if isinstance(webhook, ConversionWebhook)
        else Admission(webhook.handler(context))
        for webhook in webhooks
    }


def reads(webhooks: Iterable[Webhook], system_namespace: str) -> list[Read]:
    """Returns what all handlers together read, the configuration included."""
    admission = (webhook for webhook in webhooks if isinstance(webhook, AdmissionWebhook))
    return [Read(CONFIG_MAPS, namespace=system_namespace), *(read for webhook in admission for read in webhook.reads)]


def targets(webhooks: Iterable[Webhook], service: str) -> Targets:
    """Returns the objects whose caBundle has to be set, where they name the Service."""
    named: dict[str, list[str]] = {"MutatingWebhookConfiguration": [], "ValidatingWebhookConfiguration": [], "crds": []}
    for webhook in webhooks:
        if isinstance(webhook, ConversionWebhook):
            named["crds"] += map(str, webhook.resources)
        elif webhook.configuration not in named[webhook.configuration_kind]:
            named[webhook.configuration_kind].append(webhook.configuration)
    mutate, validate, crds = map(tuple, named.values())
    return Targets(mutating=mutate, validating=validate, crds=crds, service=service)


def configurations(webhooks: Iterable[Webhook], client_config: ClientConfig) -> list[Object]:
    """Returns the Mutating- and ValidatingWebhookConfigurations."""
    made: dict[tuple[str, str], Object] = {}
    for webhook in webhooks:
        if isinstance(webhook, AdmissionWebhook):
            kind, name = webhook.configuration_kind, webhook.configuration
            manifest = made.setdefault((kind, name), _empty(kind, name))
            manifest["webhooks"].append(_entry(webhook, client_config(webhook.path)))
    return list(made.values())


def conversions(webhooks: Iterable[Webhook], client_config: ClientConfig) -> dict[str, Object]:
    """Returns the `spec.conversion` of each CRD, by the CRD's name."""
    return {
        str(resource): {
            "strategy": "Webhook",
            "webhook": {"clientConfig": client_config(webhook.path), "conversionReviewVersions": ["v1", "v1beta1"]},
        }
        for webhook in webhooks
        if isinstance(webhook, ConversionWebhook)
        for resource in webhook.resources
    }


def _empty(kind: str, name: str) -> Object:
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "webhooks": []}


def _entry(webhook: AdmissionWebhook, client_config: Object) -> Object:
    resource = webhook.resource
    rule = {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "resources": [resource.plural],
        "operations": list(webhook.operations),
    }
    chosen = {
        "matchPolicy": webhook.match_policy,
        "reinvocationPolicy": webhook.reinvocation_policy,
        "namespaceSelector": webhook.namespace_selector,
        "objectSelector": webhook.object_selector,
    }
    return {
        "name": webhook.name,
        "clientConfig": client_config,
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1", "v1beta1"],
        "rules": [rule],
        **{field: value for field, value in chosen.items() if value},
    }
