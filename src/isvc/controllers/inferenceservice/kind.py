"""What an InferenceService is to the reconciler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isvc.api import InferenceService
from isvc.api.annotations import FINALIZER
from isvc.api.resources import CLUSTER_STORAGE_CONTAINERS, INFERENCE_SERVICES, TRAINED_MODELS
from isvc.controllers.inferenceservice.builders import CHILDREN
from isvc.controllers.inferenceservice.observe import Observer
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.plan import plan, runtime_reference
from isvc.controllers.inferenceservice.planned import INGRESS, Planned
from isvc.controllers.inferenceservice.status.edit import CONDITIONS, PREDICTOR_READY
from isvc.controllers.inferenceservice.status.report import fold, report_readiness
from isvc.engine.kind import Claim, Kind
from isvc.engine.needs import Answers
from isvc.engine.plan import Part, Plan, Reference, Retire, Stop
from isvc.kube.objects import Key, Object
from isvc.serving import names, shared_host
from isvc.serving.environment import Environment
from isvc.toolkit.cache import Reader

MOMENT: Final = 0.5  # in which further pieces become ready


def make_kind(reader: Reader, environment: Environment) -> Kind[Observed, Planned]:
    observer = Observer(reader, environment)

    def finalize(raw: Object, answers: Answers, now: str) -> Plan:
        """The models that name this service go with it; children are the garbage collector's."""
        models = tuple((TRAINED_MODELS, model) for model in observer.models_of(raw))
        return Plan((Part("models", Retire("their service goes"), found=models),))

    return Kind(
        resource=INFERENCE_SERVICES,
        api_type=InferenceService,
        conditions=CONDITIONS,
        children=CHILDREN,
        finalizer=FINALIZER,
        observe=observer.observe,
        claim=lambda observed: None if observed.is_foreign else Claim(),
        plan=plan,
        fold=fold,
        finalize=finalize,
        patience=MOMENT,
        readiness_events=report_readiness,
        sources=_sources,
        doubts=_doubts,
    )


def _sources(observed: Observed, planned: Planned) -> Iterator[Reference]:
    """Yields the runtime, and what downloads models."""
    if planned.runtime is not None:
        yield runtime_reference(planned.runtime, observed.namespace)
    for container in observed.storage_containers:
        yield CLUSTER_STORAGE_CONTAINERS, Key.of(container)


def _doubts(observed: Observed, planned: Planned) -> Iterator[Stop]:
    """Another object has the same host; two runtimes offer themselves alike, and the newer one was taken."""
    yield from shared_host.report_doubt(observed.raw, INGRESS)
    predictor, chosen = observed.service.spec.predictor, planned.runtime
    if predictor.model is None or chosen is None:
        return
    rivals = observed.runtimes.rivals(predictor.model, chosen, multi_node=predictor.worker_spec is not None)
    if rivals:
        others = ", ".join(rival.name for rival in rivals)
        model_format = predictor.model.model_format.name
        message = f"runtime {chosen.name} was taken for format {model_format}, and so might {others} have been"
        remedy = f"name one in spec.predictor.model.runtime, or give them different priorities for {model_format}"
        yield Stop(names.PREDICTOR, PREDICTOR_READY, "AmbiguousRuntime", message, remedy)
