"""A ServiceAccount `default` in every namespace."""

from __future__ import annotations

from isvc.kube.errors import AlreadyExists
from isvc.kube.objects import Key, dig, is_being_deleted
from isvc.kube.resource import NAMESPACES, SERVICE_ACCOUNTS
from isvc.local.controllers.context import Context
from isvc.toolkit.controller import Controller, Watch

NAME = "default"


def controller(context: Context) -> Controller:
    client, cache = context.client, context.cache

    async def reconcile(key: Key) -> None:
        namespace = cache.get(NAMESPACES, key.name)
        if namespace is None or is_being_deleted(namespace) or dig(namespace, "status", "phase") == "Terminating":
            return
        if cache.get(SERVICE_ACCOUNTS, NAME, key.name) is None:
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": key.name}}
            try:
                cache.note(SERVICE_ACCOUNTS, await client.create(SERVICE_ACCOUNTS, account))
            except AlreadyExists:
                return

    accounts = Watch(SERVICE_ACCOUNTS, to=lambda account: [Key("", account["metadata"]["namespace"])])
    return Controller("serviceaccount", reconcile, [Watch(NAMESPACES), accounts])
