"""`isvc-localmodel-node`: downloads the models of one node, in the place of KServe's agent of the same DaemonSet.

It has neither webhooks nor a lease: every node has one, and its LocalModelNode is its alone.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Final

import click

from isvc.controllers.localmodelnode import watches
from isvc.kube.resource import CONFIG_MAPS
from isvc.programs import flags, program
from isvc.programs.options import HEALTH_PROBES, METRICS, Options, system_namespace
from isvc.serving.config.configmap import CONFIG_MAP, Config
from isvc.serving.environment import MODELS_FOLDER, ModelNode
from isvc.toolkit import logs
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client, kubeconfig
from isvc.toolkit.client.kubeconfig import ClusterConfig
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.context import Context
from isvc.toolkit.failure import ConfigError
from isvc.toolkit.manager import Manager
from isvc.toolkit.metrics import Metrics
from isvc.toolkit.recorder import Recorder
from isvc.toolkit.waiting import retry

NAME: Final = "isvc-localmodel-node"


def build(config: ClusterConfig, options: Options, shared_cache: Cache | None = None) -> Manager:
    """Returns the program of a node, ready to run."""
    client, clock, metrics = Client.connect(config), SystemClock(), Metrics()
    cache = shared_cache or Cache(client)
    recorder = Recorder(client, NAME, clock, on_drop=metrics.event_dropped)
    context = Context(client, cache, recorder, clock)
    return Manager(
        client,
        cache,
        controllers=[watches.controller(context, options.environment)],
        services=[recorder],
        health_probes=options.health_probes,
        metrics=metrics,
        metrics_address=options.metrics,
    )


@click.command(cls=flags.GoCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--node-name", envvar="NODE_NAME", required=True, help="The node. $NODE_NAME")
@click.option(
    "--models-folder",
    default=MODELS_FOLDER,
    show_default=True,
    help="Where this program sees the folder that holds models.",
)
@click.option(
    "--models-host-path",
    envvar="MODELS_HOST_PATH",
    default="",
    help="The same folder as the node calls it, which the volumes of its groups have to be. $MODELS_HOST_PATH",
)
@click.option("--metrics-addr", type=flags.address, default=str(METRICS), show_default=True, help="0 for nowhere.")
@click.option(
    "--health-probe-addr", type=flags.address, default=str(HEALTH_PROBES), show_default=True, help="0 for nowhere."
)
@click.option("--kubeconfig", "kubeconfig_path", default="", help="The cluster, in the place of KUBECONFIG.")
@click.option("--zap-log-level", default="info", help="debug, info, warn or error.")
@click.option("--zap-devel", default=False, hidden=True, **flags.SWITCH)
def main(**given: Any) -> None:
    """Keep the models of a node: download those that its LocalModelNode lists, remove others, report.

    The cluster is found through KUBECONFIG, ~/.kube/config, or the service account of the pod. POD_NAMESPACE names
    the namespace of the configuration (kserve), which says where downloads run (localModel.jobNamespace).
    """
    logs.set_up(flags.log_level(given))
    node = ModelNode(given["node_name"], given["models_folder"], given["models_host_path"], user=os.getuid())
    options = Options(
        metrics=given["metrics_addr"],
        health_probes=given["health_probe_addr"],
        kubeconfig=given["kubeconfig_path"] or None,
        system_namespace=system_namespace(os.environ),
        node=node,
    )
    flags.run_or_exit(NAME, run(options))


async def run(options: Options) -> None:
    config = kubeconfig.load(options.kubeconfig)
    namespace = await job_namespace(config, options.system_namespace)
    await program.run(build(config, replace(options, node=replace(options.node, job_namespace=namespace))))


async def job_namespace(config: ClusterConfig, namespace: str) -> str:
    """Returns where downloads run: the only namespace whose Jobs and pods are read."""
    stored: dict[str, str] = {}

    async def read() -> None:
        found = await client.get(CONFIG_MAPS, CONFIG_MAP, namespace)
        stored.update(found.get("data") or {})

    async with Client.connect(config) as client:
        await retry(f"ConfigMap {CONFIG_MAP}", read, SystemClock())
    written = Config.parse(stored).local_model.job_namespace
    if not written:
        raise ConfigError(f"{CONFIG_MAP}: localModel.jobNamespace does not say where downloads run")
    return written
