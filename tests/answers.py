"""What a decision knows of a cluster, without one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isvc.engine.needs import UNKNOWN, Answers, Need, Stored
from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS
from isvc.serving.credentials import Lookup

Found = Mapping[str, Object | None]


def answers(namespace: str, accounts: Found | None = None, secrets: Found | None = None) -> Answers:
    """Knows these service accounts and secrets, and that Knative has no settings of its own."""

    def recall(need: Need[Any]) -> Any:
        match need:
            case Stored(resource, name, "knative-serving") if resource == CONFIG_MAPS:
                return None
            case Stored(resource, name, place) if resource == SERVICE_ACCOUNTS and place == namespace:
                return (accounts or {}).get(name, UNKNOWN)
            case Stored(resource, name, place) if resource == SECRETS and place == namespace:
                return (secrets or {}).get(name, UNKNOWN)
        return UNKNOWN

    return Answers(recall=recall)


def lookup(namespace: str, accounts: Found | None = None, secrets: Found | None = None) -> Lookup:
    return Lookup(namespace, answers(namespace, accounts, secrets))
