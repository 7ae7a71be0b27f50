"""From what was observed to what is wanted: components in the order in which requests depend on them, then ingress.

What cannot be planned stops the plan there: what comes before it is applied, what comes after is left as it is, and
nothing is pruned.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from isvc.api.annotations import asks_to_stop
from isvc.api.modes import DEPLOYMENT_MODE, DeploymentMode
from isvc.controllers.inferenceservice.builders import Builders, builders_of
from isvc.controllers.inferenceservice.canary import canaries_of, with_fewer_replicas
from isvc.controllers.inferenceservice.components import explainer, predictor, transformer
from isvc.controllers.inferenceservice.components.multinode import WorkersRefused
from isvc.controllers.inferenceservice.components.predictor import Variant
from isvc.controllers.inferenceservice.components.storage import ModelsRefused
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.planned import Canary, Deployed, ModelFailure, Planned, Stage, Stop
from isvc.controllers.inferenceservice.readiness import Readiness
from isvc.controllers.inferenceservice.status.edit import StatusEdit
from isvc.engine.plan import Child, Hold, Part, Plan, Retire, Want
from isvc.engine.policies import CREATE_ONLY
from isvc.kube.objects import Object, labels_of
from isvc.kube.patch import PatchError
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving import names
from isvc.serving.endpoints import is_multi_model
from isvc.serving.refused import Refused
from isvc.serving.runtimes import ModelRefused, Runtime
from isvc.serving.storage.ca_bundle import ca_bundle_copy
from isvc.serving.workload.component import Component


def plan(observed: Observed) -> Planned:
    builders = builders_of(observed)
    if builders is None:
        message = f"It is not possible to use {observed.mode} deployment mode when Knative Services are not available"
        remedy = f"install it, or create the service anew with the annotation {DEPLOYMENT_MODE}: Standard"
        return Planned(observed.raw, stop=Stop(Stage.MODE, message, remedy=remedy))
    draft = _Draft(observed, builders)
    steps = {
        Stage.SHARED: draft.shared,
        Stage.PREDICTOR: draft.predictor,
        Stage.TRANSFORMER: draft.transformer,
        Stage.EXPLAINER: draft.explainer,
        Stage.INGRESS: draft.ingress,
    }
    for stage, step in steps.items():
        draft.stage = stage
        try:
            step()
        except Refused as error:
            draft.stop = _stop(draft.stage, error)
        except PatchError as error:
            message = f"the {stage} cannot be merged with its runtime: {error}"
            draft.stop = Stop(stage, message, reason="InvalidSpec")
        if draft.stop is not None:
            break
    return draft.finished()


def _stop(stage: Stage, error: Refused) -> Stop:
    """What is reported about a refusal, which depends on what was refused."""
    match error:
        case ModelRefused():
            failure = ModelFailure(error.reason, error.summary)
            return Stop(stage, error.message, failure=failure, remedy=error.remedy)
        case WorkersRefused():
            invalid = ModelFailure("InvalidPredictorSpec", error.summary) if error.summary else None
            return Stop(stage, error.message, reason=error.reason, failure=invalid)
        case ModelsRefused():
            message = f"fails to create NewRawKubeReconciler for {stage}: {error.message}"
            return Stop(stage, message, reason="ReconcileFailed")
        case _:
            return Stop(stage, error.message, remedy=error.remedy)


@dataclass(slots=True)
class _Draft:
    """A plan in the making."""

    observed: Observed
    builders: Builders
    stage: Stage = Stage.SHARED
    service: Object = field(default_factory=dict)
    runtime: Runtime | None = None
    parts: list[Part] = field(default_factory=list)
    deployed: dict[str, Deployed] = field(default_factory=dict)
    canaries: tuple[Canary, ...] = ()
    stop: Stop | None = None

    def __post_init__(self) -> None:
        self.service = self.observed.raw

    # -- steps --------------------------------------------------------------------------------------------------

    def shared(self) -> None:
        """What the service needs beside its components: the CA bundle in its namespace, the list of its models."""
        children = [*_ca_bundle(self.observed), *_model_config(self.observed)]
        if children:
            self.parts.append(Part(Stage.SHARED, Want(tuple(children)), frozenset()))

    def predictor(self) -> None:
        if self.observed.mode is DeploymentMode.MODEL_MESH:
            return  # ModelMesh's own controller deploys it
        spec = self.observed.service.spec.predictor
        variant = predictor.settle_runtime(self.observed, spec, self.service)
        self.service, self.runtime = variant.service, variant.runtime
        component = predictor.build(self.observed, variant)
        if self.observed.service.spec.canary:
            self._canary(variant)
            component = replace(component, spec=with_fewer_replicas(component.spec, self.canaries))
        if self.stop is None:
            self._deploy(names.PREDICTOR, component)

    def _canary(self, stable: Variant) -> None:
        self.stage = Stage.CANARY
        self.canaries = canaries_of(self.observed, stable, self.builders.workload)
        for canary in self.canaries:
            self._add(canary.deployed, f"{Stage.CANARY} {canary.name}")
            if canary.deployed.stop is not None:
                message = f"fails to reconcile canary deployments: {canary.deployed.stop.message}"
                self.stop = Stop(Stage.CANARY, message)
                return
        self.stage = Stage.PREDICTOR

    def transformer(self) -> None:
        if (spec := self.observed.service.spec.transformer) is not None:
            self._deploy(names.TRANSFORMER, transformer.build(self.observed, spec, self.service))

    def explainer(self) -> None:
        if (spec := self.observed.service.spec.explainer) is not None:
            self._deploy(names.EXPLAINER, explainer.build(self.observed, spec, self.service))

    def ingress(self) -> None:
        """Planned on the readiness that this pass is going to report."""
        ingress = self.builders.ingress
        parts = ingress.plan(self.observed, self._planned(), self._readiness())
        self.parts += parts
        others = self.builders.other_ingress_kinds
        if others and any(part.kinds >= ingress.KINDS and not isinstance(part.answer, Hold) for part in parts):
            self.parts.append(Part(Stage.CLEANUP, Retire("the service has another ingress"), others))

    def _readiness(self) -> Readiness:
        edit = StatusEdit(self.observed.status, self.observed.now)
        for deployed in self.deployed.values():
            self.builders.workload.report(edit, deployed, self.observed.live)
        return edit.readiness()

    def _deploy(self, kind: str, component: Component) -> None:
        deployed = self.deployed[kind] = self.builders.workload.deploy(self.observed, kind, component)
        if not asks_to_stop(component.annotations):  # one component may be stopped while the service goes on
            self._add(deployed, kind)
        self.stop = deployed.stop

    def _add(self, deployed: Deployed, part: str) -> None:
        if not self.observed.stopped:
            self.parts.append(Part(part, Want(deployed.children), frozenset()))

    # -- result -------------------------------------------------------------------------------------------------

    def _planned(self) -> Planned:
        return Planned(self.service, Plan(tuple(self.parts)), self.runtime, self.deployed, self.canaries, self.stop)

    def finished(self) -> Planned:
        """Only a plan that knows everything that is wanted may say that nothing else is.

        What runs can be stopped all the same, whether or not it could be planned.
        """
        if self.stop is not None and self.observed.stopped and self.observed.live:
            self.stop = None
            self.ingress()
        if self.stop is None or self.observed.stopped:
            answer = Retire("stopped") if self.observed.stopped else Want(())
            self.parts.append(Part(Stage.CLEANUP, answer, self.builders.workload.KINDS))
        return self._planned()


def _ca_bundle(observed: Observed) -> list[Child]:
    name = observed.config.storage_initializer.ca_bundle_config_map_name
    return [ca_bundle_copy(name, observed.ca_bundle, observed.namespace, observed.system_namespace)] if name else []


def _model_config(observed: Observed) -> list[Child]:
    """The list of models that trained models are added to; ours only to create."""
    if not is_multi_model(observed.service.spec.predictor):
        return []
    metadata: Object = {"name": names.model_config(observed.name, 0), "namespace": observed.namespace}
    if labels := labels_of(observed.raw):
        metadata["labels"] = dict(labels)
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"models.json": "[]"}}
    return [Child(CONFIG_MAPS, manifest, policy=CREATE_ONLY)]
