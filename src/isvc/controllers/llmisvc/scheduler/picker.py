"""The endpoint picker: its Deployment, and the Service through which gateways ask it."""

from __future__ import annotations

from typing import Final

from isvc.api.annotations import WAKE_ON_REQUEST
from isvc.api.llm.v1alpha2 import SchedulerSpec
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.scheduler import features, tokenizer
from isvc.controllers.llmisvc.scheduler.config import flags, migrations, version
from isvc.controllers.llmisvc.scheduler.config.rewrite import TOKENIZER_CONTAINER, edit_configs, rewrite
from isvc.controllers.llmisvc.scheduler.config.source import config_arguments
from isvc.controllers.llmisvc.workload.metadata import child_metadata
from isvc.controllers.llmisvc.workload.steps import context
from isvc.controllers.llmisvc.workload.storage import Target, attach_model
from isvc.controllers.llmisvc.workload.waking import hold_requests, wakes_on_request
from isvc.engine.plan import Child
from isvc.engine.policies import MARKED_SHARED, MARKED_WORKLOAD
from isvc.kube.objects import Object, deep_copy, dig
from isvc.kube.resource import DEPLOYMENTS, SERVICES
from isvc.serving.llm import labels, names
from isvc.serving.llm.tracing import trace_scheduler
from isvc.serving.refused import Refused

_QUEUE_SINCE: Final = version.Version(0, 9, 0)
_ELECTION: Final = "-ha-enable-leader-election"
_BUILDING: Final = "failed to build expected scheduler deployment"
MODEL_PATH: Final = "/mnt/models/base"
_PORTS: Final = frozenset({"grpc", "grpc-health", "metrics", "zmq"})


def picker_deployment(observed: Observed, account: Object) -> Child:
    """Raises `Refused` for flags and configurations that the picker's version would refuse."""
    scheduler = observed.scheduler or SchedulerSpec()
    name = names.scheduler(observed.name)
    live = observed.live.get((DEPLOYMENTS, name)) or {}
    fixed = labels.labels(observed.name, labels.SCHEDULER)
    # A selector never changes: pods carry what a live one asks for.
    selector = dig(live, "spec", "selector", "matchLabels") or fixed
    given = {**fixed, **scheduler.labels, **selector}
    template: Object = {"metadata": {"labels": given}, "spec": _pod(observed, scheduler, account, live)}
    if scheduler.annotations:
        template["metadata"]["annotations"] = dict(scheduler.annotations)
    # One picker at a time works best, as it knows what is cached where: the old one goes before the new one comes.
    spec: Object = {"strategy": {"type": "Recreate"}, "selector": {"matchLabels": selector}, "template": template}
    if scheduler.replicas is not None:
        spec["replicas"] = scheduler.replicas
    manifest = DEPLOYMENTS.manifest(child_metadata(observed, name, given), spec=spec)
    url = tokenizer.url(observed) if features.has_tokenizer(scheduler) else None
    with context(f"{_BUILDING}: failed to apply scheduler migrations"):
        rewrite(manifest, url, dig(live, "spec", "template", "spec"))
    if wakes_on_request(observed):
        _hold_requests(manifest)
    return Child(DEPLOYMENTS, manifest, policy=MARKED_WORKLOAD if "replicas" in spec else MARKED_SHARED)


def _hold_requests(deployment: Object) -> None:
    """Raises `Refused` where requests cannot be held: the picker is older, or its configuration is in a file."""
    template = deployment["spec"]["template"]
    pod = template["spec"]
    if not flags.text_positions((flags.container(pod) or {}).get("args") or []):
        raise Refused(f"{WAKE_ON_REQUEST}: flow control is switched on in the configuration, which has to be inline")
    if (runs := version.of_template(template)) < _QUEUE_SINCE:
        found = ".".join(map(str, runs[:3]))
        raise Refused(f"{WAKE_ON_REQUEST}: requests wait in an endpoint picker of 0.9 or later, and this is {found}")
    edit_configs(pod, hold_requests)


def _pod(observed: Observed, scheduler: SchedulerSpec, account: Object, live: Object) -> Object:
    live_pod = dig(live, "spec", "template", "spec") or {}
    pod = deep_copy(scheduler.template or {})
    if main := flags.container(pod):
        configured = _with_arguments(observed, scheduler, main, live_pod)
        pod["containers"] = [configured if each is main else each for each in pod["containers"]]
    if flags.container(pod, TOKENIZER_CONTAINER):
        target = Target(TOKENIZER_CONTAINER, MODEL_PATH, tokenizer_only=True)
        with context(f"{_BUILDING}: failed to attach model artifacts to scheduler deployment"):
            attach_model(observed, pod, target, account, live_pod)
        edit_configs(pod, migrations.use_tokenizer_beside)
    return pod


def _with_arguments(observed: Observed, scheduler: SchedulerSpec, main: Object, live_pod: Object) -> Object:
    arguments = list(main.get("args") or [])
    if (scheduler.replicas or 0) > 1 and not {_ELECTION, f"-{_ELECTION}"} & {*arguments}:
        arguments.append(f"-{_ELECTION}")
    arguments += config_arguments(observed.spec, scheduler, live_pod)
    main = {**main, "args": arguments}
    tracing = observed.spec.tracing
    return main if tracing is None else trace_scheduler(main, tracing, observed.namespace, observed.name)


def picker_service(observed: Observed) -> Child:
    """Has the ports of the pod's containers that have known names; of two of a name the later one."""
    given = labels.labels(observed.name, labels.SCHEDULER)
    containers = ((observed.scheduler and observed.scheduler.template) or {}).get("containers") or ()
    ports = {port.get("name"): port for each in containers for port in each.get("ports") or ()}
    metadata = child_metadata(observed, names.picker_service(observed.scheduler, observed.name), given)
    spec = {"selector": given, "ports": [_port(ports[name]) for name in sorted(_PORTS & ports.keys())]}
    return Child(SERVICES, SERVICES.manifest(metadata, spec=spec))


def _port(port: Object) -> Object:
    name = port["name"]
    return {"name": name, "port": port["containerPort"], "targetPort": name, "protocol": port.get("protocol", "TCP")}
