"""What an LLMInferenceService is to the reconciler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isvc.api.annotations import LLM_FINALIZER
from isvc.api.llm.v1alpha2 import LLMInferenceService
from isvc.api.resources import LLM_INFERENCE_SERVICE_CONFIGS, LLM_INFERENCE_SERVICES
from isvc.controllers.llmisvc.observe import Observer
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.plan import CHILDREN, Planned, plan
from isvc.controllers.llmisvc.router.observe import waiting_for
from isvc.controllers.llmisvc.status.conditions import CONDITIONS, GROUP_DEGRADED, GROUP_READY
from isvc.controllers.llmisvc.status.edit import StatusEdit
from isvc.controllers.llmisvc.status.fold import fold, report_readiness
from isvc.engine.kind import Folded, Kind
from isvc.engine.needs import Answers
from isvc.engine.plan import Part, Plan, Reference, Retire
from isvc.kube.conditions import FALSE
from isvc.kube.objects import Key, Object
from isvc.kube.resource import CLUSTER_ROLE_BINDINGS
from isvc.serving.environment import Environment
from isvc.toolkit.cache import Reader

MOMENT: Final = 2.0  # in which further pieces become ready
WAIT_FOR_GROUP: Final = 5.0


def make_kind(reader: Reader, environment: Environment) -> Kind[Observed, Planned]:
    observer = Observer(reader, environment)

    def finalize(raw: Object, answers: Answers, now: str) -> Plan | Folded:
        """No other member of the group may route here; then what cannot be owned goes, and the rest is collected."""
        if member := waiting_for(reader, raw):
            return Folded(_report_member(raw, member, now), again=WAIT_FOR_GROUP)
        bindings = tuple((CLUSTER_ROLE_BINDINGS, binding) for binding in observer.bindings_of(raw))
        return Plan((Part("scheduler's rights", Retire("the service goes"), found=bindings),))

    return Kind(
        resource=LLM_INFERENCE_SERVICES,
        api_type=LLMInferenceService,
        conditions=CONDITIONS,
        children=CHILDREN,
        finalizer=LLM_FINALIZER,
        observe=observer.observe,
        plan=plan,
        fold=fold,
        finalize=finalize,
        edit_status=lambda conditions, status, now: StatusEdit(status, now),
        patience=MOMENT,
        reports_children=True,
        readiness_events=report_readiness,
        sources=_sources,
    )


def _report_member(raw: Object, member: str, now: str) -> Object:
    edit = StatusEdit(raw.get("status") or {}, now)
    message = f"waiting for member {member} to remove backendRef before deletion"
    edit.mark(GROUP_READY, FALSE, "FinalizationPending", message)
    edit.clear(GROUP_DEGRADED)
    return edit.result()


def _sources(observed: Observed, planned: Planned) -> Iterator[Reference]:
    for applied in observed.merged.applied:
        yield LLM_INFERENCE_SERVICE_CONFIGS, Key(applied.namespace, applied.name)
