"""What an LLMInferenceServiceConfig is to the reconciler: its status names its users, and its finalizer waits for them.

It has no children, so its plan is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from isvc.api import DecodeError
from isvc.api.llm.v1alpha2 import LLMInferenceServiceConfig
from isvc.api.resources import GROUP, LLM_INFERENCE_SERVICE_CONFIGS
from isvc.controllers.llmisvc.config.users import Users
from isvc.engine import kind as engine
from isvc.engine.events import WARNING, Event
from isvc.engine.kind import Claim, Folded, Kind
from isvc.engine.needs import Answers
from isvc.engine.outcome import Outcome
from isvc.engine.plan import Plan
from isvc.engine.status import StatusEditor
from isvc.kube.conditions import FALSE, TRUE, ConditionSet, is_true
from isvc.kube.objects import Key, Object, finalizers_of, generation_of
from isvc.kube.patch import merge_patch
from isvc.serving.environment import Environment
from isvc.serving.llm.gojson import rewrite_spec
from isvc.toolkit.cache import Reader

FINALIZER: Final = f"{GROUP}/llmisvcconfig-finalizer"
IN_USE: Final = "ConfigInUse"
INVALID: Final = "InvalidSpec"
CONDITIONS: Final = ConditionSet(())
REST: Final = 0.5  # between two looks at one configuration
REST_PER_USER: Final = 0.1  # a preset has every service as its user: they come and go without end
LONGEST_REST: Final = 30.0


@dataclass(frozen=True)
class Observed(engine.Observed):
    """`spelled` is the spec as Go would write it, where that has to be known.

    `problem` says which field is not of its type, if one is: services that use the configuration will fail by it.
    """

    users: list[Key]
    spelled: Object | None = None
    problem: str = ""


def make_kind(reader: Reader, environment: Environment) -> Kind[Observed, Plan]:
    users = Users(reader, environment.system_namespace, environment.preset_prefix)

    def observe(raw: Object, answers: Answers, now: str) -> Observed:
        found = users.of(raw)
        if FINALIZER in finalizers_of(raw) and _is_good(raw):
            return Observed(raw, found, now=now)
        spec = raw.get("spec") or {}
        try:
            LLMInferenceServiceConfig.decode({"spec": spec})
            return Observed(raw, found, rewrite_spec(spec, LLMInferenceServiceConfig), now=now)
        except DecodeError as error:
            return Observed(raw, found, problem=str(error), now=now)

    def finalize(raw: Object, answers: Answers, now: str) -> Plan | Folded:
        found = users.of(raw)
        if not found:
            return Plan()
        listed = ", ".join(map(str, found[:10]))
        message = f"Cannot delete LLMInferenceServiceConfig {Key.of(raw)}: used by {listed}"
        status = status_of(raw, found, now, "DeletionBlocked")
        return Folded(status, (Event(WARNING, "DeletionBlocked", message),))

    return Kind(
        resource=LLM_INFERENCE_SERVICE_CONFIGS,
        api_type=LLMInferenceServiceConfig,
        conditions=CONDITIONS,
        finalizer=FINALIZER,
        observe=observe,
        claim=claim,
        plan=lambda observed: Plan(),
        fold=fold,
        finalize=finalize,
        event_source="LLMInferenceServiceConfigController",
    )


def claim(observed: Observed) -> Claim:
    """The write that adds the finalizer also spells the spec as Go would."""
    if observed.spelled is None:
        return Claim()
    return Claim(spec=merge_patch.diff(observed.raw.get("spec") or {}, observed.spelled))


def fold(observed: Observed, planned: Plan, outcome: Outcome) -> Folded:
    rest = min(REST + REST_PER_USER * len(observed.users), LONGEST_REST)
    events = (Event(WARNING, INVALID, observed.problem),) if observed.problem else ()
    return Folded(status_of(observed.raw, observed.users, observed.now, problem=observed.problem), events, rest=rest)


def status_of(raw: Object, users: list[Key], now: str, reason: str = "InUse", problem: str = "") -> Object:
    """`reason` is given for a configuration that is in use."""
    edit = StatusEditor(CONDITIONS, raw.get("status") or {}, now)
    edit.fields["observedGeneration"] = generation_of(raw)
    edit.fields["referencedBy"] = [{"name": user.name, "namespace": user.namespace} for user in users]
    if users:
        edit.mark(IN_USE, TRUE, reason, f"referenced by {len(users)} LLMInferenceService(s)")
    else:
        edit.mark(IN_USE, FALSE, "NotInUse", "not referenced by any LLMInferenceService")
    edit.mark("Ready", *((FALSE, INVALID, problem) if problem else (TRUE,)))
    return edit.result()


def _is_good(raw: Object) -> bool:
    """Returns whether the spec was looked at before, and has not changed since."""
    status = raw.get("status") or {}
    is_known = status.get("observedGeneration") == generation_of(raw)
    return is_known and is_true(status.get("conditions") or (), "Ready")
