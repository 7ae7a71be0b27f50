"""From what was observed to what is wanted: components in the order in which requests depend on them, then ingress.

What cannot be planned stops the plan there: what comes before it is applied, what comes after is held.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from isvc.api.annotations import asks_to_stop
from isvc.api.modes import DEPLOYMENT_MODE, DeploymentMode
from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, CLUSTER_STORAGE_CONTAINERS, SERVING_RUNTIMES
from isvc.controllers.inferenceservice.builders import CHILDREN, Builders, builders_of
from isvc.controllers.inferenceservice.canary import canaries_of, with_fewer_replicas
from isvc.controllers.inferenceservice.components import explainer, predictor, transformer
from isvc.controllers.inferenceservice.components.multinode import WorkersRefused
from isvc.controllers.inferenceservice.components.predictor import Variant
from isvc.controllers.inferenceservice.components.storage import ModelsRefused
from isvc.controllers.inferenceservice.ingress import interceptor
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.planned import (
    CANARY,
    CLEANUP,
    INGRESS,
    INTERCEPTOR,
    MODE,
    SHARED,
    Canary,
    Deployed,
    ModelFailure,
    Planned,
    ServiceStop,
    silent_stop,
    stop_at,
)
from isvc.controllers.inferenceservice.status.edit import Readiness, StatusEdit
from isvc.engine.dependents import any_of
from isvc.engine.plan import Child, Hold, Part, Reference, Retire, Want
from isvc.engine.policies import CREATE_ONLY
from isvc.kube.objects import Key, Object, dig, labels_of
from isvc.kube.patch import PatchError
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving import names
from isvc.serving.endpoints import is_multi_model
from isvc.serving.refused import Refused
from isvc.serving.runtimes import ModelRefused, Runtime
from isvc.serving.storage.ca_bundle import ca_bundle_copy
from isvc.serving.workload.component import Component
from isvc.serving.workload.http_metric import asks_for_http_metric

RECOVERY: Final = 1.0


def plan(observed: Observed) -> Planned:
    if observed.is_foreign or observed.awaits_predictor:
        return _hold_all(observed, _model_mesh())
    builders = builders_of(observed)
    if builders is None:
        message = f"It is not possible to use {observed.mode} deployment mode when Knative Services are not available"
        remedy = f"install it, or create the service anew with the annotation {DEPLOYMENT_MODE}: Standard"
        return _hold_all(observed, silent_stop(MODE, message, remedy, reason="KnativeNotInstalled"))
    draft = _Draft(observed, builders)
    steps = {
        SHARED: draft.shared,
        names.PREDICTOR: draft.predictor,
        names.TRANSFORMER: draft.transformer,
        names.EXPLAINER: draft.explainer,
        INGRESS: draft.ingress,
    }
    for part, step in steps.items():
        draft.part = part
        try:
            step()
        except Refused as error:
            draft.stop = _stop(draft.part, error)
        except PatchError as error:
            draft.stop = stop_at(part, f"the {part} cannot be merged with its runtime: {error}", "InvalidSpec")
        if draft.stop is not None:
            break
    return draft.finish()


def runtime_reference(runtime: Runtime, namespace: str) -> Reference:
    if runtime.cluster:
        return CLUSTER_SERVING_RUNTIMES, Key("", runtime.name)
    return SERVING_RUNTIMES, Key(namespace, runtime.name)


def _hold_all(observed: Observed, stop: ServiceStop) -> Planned:
    return Planned((Part(stop.part, stop.hold, CHILDREN),), stop, references=frozenset(), service=observed.raw)


def _model_mesh() -> ServiceStop:
    remedy = f"create it anew with the annotation {DEPLOYMENT_MODE}: Standard if ModelMesh is not installed"
    message = "ModelMesh's own controller deploys this service"
    return silent_stop(names.PREDICTOR, message, remedy, reason="DeployedByModelMesh")


def _stop(part: str, error: Refused) -> ServiceStop:
    """Returns what is reported about a refusal, which depends on what was refused."""
    match error:
        case ModelRefused():
            failure = ModelFailure(error.reason, error.summary)
            return silent_stop(part, error.message, error.remedy, error.reason, failure)
        case WorkersRefused():
            invalid = ModelFailure("InvalidPredictorSpec", error.summary) if error.summary else None
            return replace(stop_at(part, error.message, error.reason), failure=invalid)
        case ModelsRefused():
            return stop_at(part, f"fails to create NewRawKubeReconciler for {part}: {error.message}")
        case _:
            return silent_stop(part, error.message, error.remedy)


@dataclass(slots=True)
class _Draft:
    """A plan in the making."""

    observed: Observed
    builders: Builders
    part: str = SHARED
    service: Object = field(default_factory=dict)
    runtime: Runtime | None = None
    parts: list[Part] = field(default_factory=list)
    deployed: dict[str, Deployed] = field(default_factory=dict)
    canaries: tuple[Canary, ...] = ()
    stop: ServiceStop | None = None

    def __post_init__(self) -> None:
        self.service = self.observed.raw

    # -- steps --------------------------------------------------------------------------------------------------

    def shared(self) -> None:
        """Plans what is needed beside the components: the CA bundle in its namespace, the list of its models."""
        children = [*_ca_bundle(self.observed), *_model_config(self.observed)]
        if children:
            self.parts.append(Part(SHARED, Want(tuple(children))))

    def predictor(self) -> None:
        if self.observed.mode is DeploymentMode.MODEL_MESH:
            return  # ModelMesh's own controller deploys it
        spec = self.observed.service.spec.predictor
        variant = predictor.settle_runtime(self.observed, spec, self.service)
        self.service, self.runtime = variant.service, variant.runtime
        component = predictor.build(self.observed, variant)
        if self.observed.service.spec.canary:
            self._canary(variant)
            if not asks_for_http_metric(component.annotations):  # it has as many as there are requests for
                component = replace(component, spec=with_fewer_replicas(component.spec, self.canaries))
        if self.stop is None:
            self._deploy(names.PREDICTOR, component)

    def _canary(self, stable: Variant) -> None:
        self.part = CANARY
        self.canaries = canaries_of(self.observed, stable, self.builders.workload)
        for canary in self.canaries:
            self._add(canary.deployed, f"{CANARY} {canary.name}")
            if canary.deployed.stop is not None:
                message = f"fails to reconcile canary deployments: {canary.deployed.stop.message}"
                self.stop = silent_stop(CANARY, message)
                return
        self.part = names.PREDICTOR

    def transformer(self) -> None:
        if (spec := self.observed.service.spec.transformer) is not None:
            self._deploy(names.TRANSFORMER, transformer.build(self.observed, spec, self.service))

    def explainer(self) -> None:
        if (spec := self.observed.service.spec.explainer) is not None:
            self._deploy(names.EXPLAINER, explainer.build(self.observed, spec, self.service))

    def ingress(self) -> None:
        """Planned on the readiness that this pass is going to report."""
        ingress, others = self.builders.ingress, self.builders.other_ingress_kinds
        planned = self._planned()
        if not self.observed.stopped and (through := interceptor.children(self.observed, planned, ingress)):
            self.parts.append(Part(INTERCEPTOR, Want(through)))
        parts = ingress.plan(self.observed, planned, self._readiness())
        self.parts += parts
        if others and not any(isinstance(part.answer, Hold) and part.kinds >= ingress.KINDS for part in parts):
            self.parts.append(Part(CLEANUP, Retire("the service has another ingress"), others))

    def _readiness(self) -> Readiness:
        edit = StatusEdit(self.observed.status, self.observed.now)
        for deployed in self.deployed.values():
            self.builders.workload.report(edit, self.observed, deployed, self.observed.live)
        return edit.readiness()

    def _deploy(self, kind: str, component: Component) -> None:
        deployed = self.deployed[kind] = self.builders.workload.deploy(self.observed, kind, component)
        if not asks_to_stop(component.annotations):  # one component may be stopped while the service goes on
            self._add(deployed, kind)
        self.stop = deployed.stop

    def _add(self, deployed: Deployed, part: str) -> None:
        if not self.observed.stopped:
            self.parts.append(Part(part, Want(deployed.children)))

    # -- result -------------------------------------------------------------------------------------------------

    def _planned(self) -> Planned:
        return Planned(
            tuple(self.parts),
            self.stop,
            self.observed.is_pinned,
            self._pause(),
            self._references(),
            service=self.service,
            runtime=self.runtime,
            deployed=self.deployed,
            canaries=self.canaries,
        )

    def _pause(self) -> float:
        """What was missing is often applied together with further edits; they are taken together."""
        refused = dig(self.observed.status, "modelStatus", "transitionStatus") == "InvalidSpec"
        return RECOVERY if refused and self.stop is None else 0.0

    def _references(self) -> frozenset[Reference]:
        """Returns the runtimes that are used, and whatever may let a plan go on that has stopped."""
        namespace, models = self.observed.namespace, self.observed.service.spec
        runtimes = [each for each in (self.runtime, *(canary.runtime for canary in self.canaries)) if each is not None]
        found = {runtime_reference(runtime, namespace) for runtime in runtimes}
        if self.stop is not None:
            found |= {any_of(SERVING_RUNTIMES, namespace), any_of(CLUSTER_SERVING_RUNTIMES)}
        if self.stop is not None or any(each and each.storage_uris for each in (models.predictor, models.transformer)):
            found.add(any_of(CLUSTER_STORAGE_CONTAINERS))
        return frozenset(found)

    def finish(self) -> Planned:
        """What could not be planned is held, so that nothing of its kinds goes.

        What runs can be stopped all the same, whether or not it could be planned.
        """
        if self.stop is not None and self.observed.stopped and self.observed.live:
            self.stop = None
            self.ingress()
        kinds = self.builders.workload.KINDS
        if self.stop is not None and not self.observed.stopped:
            self.parts.append(Part(self.stop.part, self.stop.hold, kinds))
        answer = Retire("stopped") if self.observed.stopped else Want(())
        self.parts.append(Part(CLEANUP, answer, kinds))
        return self._planned()


def _ca_bundle(observed: Observed) -> list[Child]:
    name = observed.config.storage_initializer.ca_bundle_config_map_name
    return [ca_bundle_copy(name, observed.ca_bundle, observed.namespace, observed.system_namespace)] if name else []


def _model_config(observed: Observed) -> list[Child]:
    """Returns the list of models that trained models are added to; ours only to create."""
    if not is_multi_model(observed.service.spec.predictor):
        return []
    metadata: Object = {"name": names.model_config(observed.name, 0), "namespace": observed.namespace}
    if labels := labels_of(observed.raw):
        metadata["labels"] = dict(labels)
    manifest = CONFIG_MAPS.manifest(metadata, data={"models.json": "[]"})
    return [Child(CONFIG_MAPS, manifest, policy=CREATE_ONLY)]
