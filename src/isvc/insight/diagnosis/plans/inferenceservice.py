"""The plan of an InferenceService."""

from __future__ import annotations

from collections.abc import Iterator

from isvc.api.codec import DecodeError
from isvc.api.modes import DEPLOYMENT_MODE, DeploymentMode
from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, CLUSTER_STORAGE_CONTAINERS, SERVING_RUNTIMES
from isvc.controllers.inferenceservice.observe import Gatherer, Observer
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.plan import plan
from isvc.controllers.inferenceservice.planned import Planned
from isvc.controllers.inferenceservice.status.explanations import explain_stop
from isvc.controllers.inferenceservice.watches import reads
from isvc.engine.plan import Reference
from isvc.insight.diagnosis.finding import Finding, Level
from isvc.insight.diagnosis.intent import Intent
from isvc.insight.diagnosis.intent import _configuration as configuration
from isvc.insight.diagnosis.intent import _unconfigured as unconfigured
from isvc.insight.diagnosis.intent import _unreadable as unreadable
from isvc.insight.diagnosis.snapshot import Snapshot
from isvc.kube.errors import Forbidden
from isvc.kube.objects import Key, Object
from isvc.serving.knative_settings import KnativeSettings
from isvc.toolkit.client import Client
from isvc.toolkit.clock import SystemClock, timestamp


async def intent(client: Client, snapshot: Snapshot, service: Object) -> Intent:
    clock = SystemClock()
    observer = Observer(snapshot.reader(reads(snapshot.system_namespace)), snapshot.system_namespace)
    config = observer.configuration.in_force()
    if config is None:
        return unconfigured(snapshot, observer.configuration.problem)
    try:
        observed = observer.observe(service, config, timestamp(clock.now()))
    except DecodeError as error:
        return Intent(
            problem=Finding(
                "InvalidSpec",
                str(error),
                "correct that field; our webhooks refuse such a service where they are installed",
            )
        )
    if observed.mode is DeploymentMode.MODEL_MESH:
        return Intent(problem=_model_mesh(observed))
    try:
        observed, planned = await Gatherer(client, KnativeSettings(client, clock)).gather(observed, plan)
    except Forbidden as error:  # a secret or service account that this user may not read
        return unreadable(error.message)
    problem = None
    if planned.stop is not None:
        why = explain_stop(planned.stop)
        problem = Finding(why.reason, planned.stop.message, planned.stop.remedy or "change the service accordingly")
    sources = (configuration(snapshot), *_sources(snapshot, observed, planned))
    return Intent(planned.plan.wanted(), problem, tuple(_rivals(observed, planned)), sources=sources)


def _sources(snapshot: Snapshot, observed: Observed, planned: Planned) -> Iterator[Reference]:
    """The runtime, and what downloads models."""
    if planned.runtime is not None and planned.runtime.cluster:
        yield CLUSTER_SERVING_RUNTIMES, Key("", planned.runtime.name)
    elif planned.runtime is not None:
        yield SERVING_RUNTIMES, Key(observed.namespace, planned.runtime.name)
    for container in snapshot.objects.get(CLUSTER_STORAGE_CONTAINERS, ()):
        yield CLUSTER_STORAGE_CONTAINERS, Key.of(container)


def _model_mesh(observed: Observed) -> Finding:
    message = f"InferenceService {observed.name} is in ModelMesh mode, which ModelMesh's own controller deploys"
    remedy = f"install ModelMesh, or create the service anew with the annotation {DEPLOYMENT_MODE}: Standard"
    return Finding("DeployedByModelMesh", message, remedy)


def _rivals(observed: Observed, planned: Planned) -> Iterator[Finding]:
    """Two runtimes offer themselves alike, and the newer one was taken."""
    predictor, chosen = observed.service.spec.predictor, planned.runtime
    if predictor.model is None or chosen is None:
        return
    rivals = observed.runtimes.rivals(predictor.model, chosen, multi_node=predictor.worker_spec is not None)
    if rivals:
        others = ", ".join(rival.name for rival in rivals)
        model_format = predictor.model.model_format.name
        message = f"runtime {chosen.name} was taken for format {model_format}, and so might {others} have been"
        remedy = f"name one in spec.predictor.model.runtime, or give them different priorities for {model_format}"
        yield Finding("AmbiguousRuntime", message, remedy, Level.WARNS)
