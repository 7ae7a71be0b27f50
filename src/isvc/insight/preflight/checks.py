"""All checks, in the order in which they are reported."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial

from isvc.insight.preflight.finding import Finding, error, ok, warning
from isvc.insight.preflight.kinds import check_projects, check_version
from isvc.insight.preflight.others import check_leases, check_local_models, check_managers, check_webhooks
from isvc.insight.preflight.permissions import check_permissions
from isvc.insight.preflight.pod_programs import QUEUE_PROXY_CONFIG, check_images, check_metric_aggregation
from isvc.kube.errors import Forbidden, NotFound
from isvc.kube.objects import Object
from isvc.kube.resource import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    LEASES,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    SERVICES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from isvc.serving.config import CONFIG_MAP, Config
from isvc.serving.config.configmap import ConfigError
from isvc.serving.environment import KNATIVE_NAMESPACE
from isvc.toolkit.client import Client
from isvc.toolkit.clock import SystemClock


async def preflight(client: Client, system_namespace: str) -> list[Finding]:
    """Reads the cluster; what the caller may not read is a finding, too."""
    reader = _Reader(client)
    crds, deployments, daemon_sets, leases, services, slices, mutating, validating = await asyncio.gather(
        reader.list(CUSTOM_RESOURCE_DEFINITIONS),
        reader.list(DEPLOYMENTS),
        reader.list(DAEMON_SETS),
        reader.list(LEASES, system_namespace),
        reader.list(SERVICES),
        reader.list(ENDPOINT_SLICES),
        reader.list(MUTATING_WEBHOOK_CONFIGURATIONS),
        reader.list(VALIDATING_WEBHOOK_CONFIGURATIONS),
    )
    unreadable = reader.unreadable
    findings = [check_version(await client.server_version())]
    findings += _if_read(unreadable, (CUSTOM_RESOURCE_DEFINITIONS,), lambda: check_projects(crds))
    workloads = [*map(DEPLOYMENTS.typed, deployments), *map(DAEMON_SETS.typed, daemon_sets)]
    config, found = await _configuration(client, system_namespace)
    findings += found
    findings += _if_read(unreadable, (DEPLOYMENTS, DAEMON_SETS), lambda: check_managers(workloads))
    if config is not None:
        findings += _if_read(unreadable, (DEPLOYMENTS, DAEMON_SETS), partial(check_local_models, config, workloads))
    findings += check_leases(leases, SystemClock().now())
    findings += _if_read(
        unreadable, (SERVICES, ENDPOINT_SLICES), lambda: check_webhooks([*mutating, *validating], services, slices)
    )
    findings += await check_permissions(client, system_namespace)
    findings += (
        warning("access", f"you may not list {resource}", "what depends on it was not checked")
        for resource in unreadable
    )
    return findings


class _Reader:
    def __init__(self, client: Client) -> None:
        self._client = client
        self.unreadable: list[Resource] = []

    async def list(self, resource: Resource, namespace: str = "") -> list[Object]:
        try:
            return (await self._client.list(resource, namespace)).items
        except Forbidden:
            self.unreadable.append(resource)
        except NotFound:
            pass
        return []


def _if_read(
    unreadable: list[Resource], needed: tuple[Resource, ...], check: Callable[[], Iterator[Finding]]
) -> list[Finding]:
    """Runs a check unless what it needs could not be read: nothing is concluded then."""
    return [] if any(resource in unreadable for resource in needed) else [*check()]


async def _configuration(client: Client, namespace: str) -> tuple[Config | None, list[Finding]]:
    """Returns the configuration, if there is one that can be read, and what is to be said of it."""
    try:
        found = await client.get(CONFIG_MAPS, CONFIG_MAP, namespace)
        config = Config.parse(found.get("data") or {})
        knative = await _find(client, QUEUE_PROXY_CONFIG, KNATIVE_NAMESPACE)
    except NotFound:
        return None, [ok("configuration", f"there is no ConfigMap {namespace}/{CONFIG_MAP} yet")]
    except Forbidden:
        return None, [warning("access", f"you may not read ConfigMap {namespace}/{CONFIG_MAP}", "it was not checked")]
    except ConfigError as problem:
        return None, [error("configuration", f"ConfigMap {namespace}/{CONFIG_MAP}: {problem}", "correct the section")]
    readable = ok("configuration", f"ConfigMap {namespace}/{CONFIG_MAP} can be read")
    return config, [readable, *check_images(config), *check_metric_aggregation(config, knative)]


async def _find(client: Client, config_map: str, namespace: str) -> Object | None:
    try:
        return await client.get(CONFIG_MAPS, config_map, namespace)
    except (NotFound, Forbidden):
        return None
