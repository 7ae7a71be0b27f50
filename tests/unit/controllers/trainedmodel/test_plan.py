import json
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from isvc.api import InferenceService
from isvc.api.resources import INFERENCE_SERVICES, TRAINED_MODELS
from isvc.api.trainedmodel import TrainedModel
from isvc.controllers.trainedmodel.observe import Observed, model_config, observe
from isvc.controllers.trainedmodel.plan import ALLOCATED_LABEL, PARENT_LABEL, claim, finalize, plan
from isvc.controllers.trainedmodel.status import LOOK_AGAIN, fold
from isvc.engine.needs import Answers, Needs, Stored
from isvc.engine.outcome import Outcome
from isvc.engine.plan import Retire, Want
from isvc.kube import conditions
from isvc.kube.objects import Object
from isvc.kube.readiness import is_ready
from isvc.toolkit.cache.memory import MemoryReader

NOW = "2026-01-01T00:00:00Z"


def service(*, ready=True, limit="1Gi", predictor=None):
    resources = {"limits": {"memory": limit}} if limit else {}
    return {
        "metadata": {"name": "fleet", "namespace": "ns"},
        "spec": {"predictor": predictor or {"model": {"modelFormat": {"name": "sklearn"}, "resources": resources}}},
        "status": {
            "url": "http://fleet.example.com",
            "address": {"url": "http://fleet.ns.svc"},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def edited(parent):
    """Its controller has reported on the spec before."""
    metadata = {**parent["metadata"], "generation": 2}
    return {**parent, "metadata": metadata, "status": {**parent["status"], "observedGeneration": 1}}


def model(name="north", memory="512Mi", *, admitted=False, deleting=False, status=None):
    labels = {PARENT_LABEL: "fleet", ALLOCATED_LABEL: "fleet"} if admitted else {}
    metadata = {"name": name, "namespace": "ns", "labels": labels}
    if deleting:
        metadata["deletionTimestamp"] = NOW
    spec = {"inferenceService": "fleet", "model": {"storageUri": "gs://m", "framework": "sklearn", "memory": memory}}
    return {"metadata": metadata, "spec": spec, "status": status or {}}


def config_map(*names):
    models = [{"modelName": name, "modelSpec": {}} for name in names]
    return {"metadata": {"name": "modelconfig-fleet-0"}, "data": {"models.json": json.dumps(models)}}


def observed(subject, parent, siblings=(), listed=None, now=NOW):
    typed = InferenceService.decode(parent) if parent else None
    others = tuple(map(TrainedModel.decode, siblings))
    answers = Answers({model_config("fleet", "ns"): listed})
    model, ready = TrainedModel.decode(subject), bool(parent and is_ready(parent))
    return Observed(subject, model, typed, ready, others, answers=answers, now=now)


@dataclass
class Planned:
    """What comes of a model: what it carries itself, its entry in the list, and its status."""

    labels: Mapping[str, str] | None
    spec: Object | None
    models: str | None
    status: Object
    again: float | None


def planned(subject, parent=None, siblings=(), listed=()):
    return plan_of(observed(subject, parent or service(), siblings, config_map(*listed)))


def plan_of(seen):
    carried, wanted = claim(seen), plan(seen)
    assert carried is not None
    folded = fold(seen, wanted, Outcome())
    return Planned(carried.labels, carried.spec, text_of(wanted), folded.status, folded.again)


def text_of(wanted):
    """The list as the one edit of the plan would leave it, if there is an edit."""
    edits = [edit for part in wanted.parts if isinstance(part.answer, Want) for edit in part.answer.edits]
    patches = [edit.change(edit.live) or {} for edit in edits]
    return patches[0]["data"]["models.json"] if patches else None


def status_of(result, kind):
    condition = conditions.find(result.status["conditions"], kind)
    assert condition is not None
    return condition["status"]


def test_a_model_that_fits_is_admitted_listed_and_addressed():
    result = planned(model(), listed=["south"])
    assert result.labels == {PARENT_LABEL: "fleet", ALLOCATED_LABEL: "fleet"}
    assert [m["modelName"] for m in json.loads(result.models)] == ["south", "north"]
    assert result.status["url"] == "http://fleet.example.com/v1/models/north:predict"
    assert status_of(result, "Ready") == "True"


def test_a_settled_model_asks_for_no_write():
    first = planned(model())
    listed = {"metadata": {"name": "modelconfig-fleet-0"}, "data": {"models.json": first.models}}
    settled = {**model(admitted=True), "status": first.status}
    again = plan_of(observed(settled, service(), (settled,), listed, "2027-01-01T00:00:00Z"))
    assert (again.models, again.status) == (None, first.status)


@pytest.mark.parametrize(("memory", "fits"), [("512Mi", True), ("513Mi", False)])
def test_memory_counts_the_admitted_models_and_itself_once(memory, fits):
    other = model("south", "512Mi", admitted=True)
    waiting = model("east", "900Mi")
    own_old_version = model("north", "100Mi", admitted=True)
    result = planned(model(memory=memory), siblings=[other, waiting, own_old_version])
    assert (ALLOCATED_LABEL in (result.labels or {})) is fits
    assert status_of(result, "MemoryResourceAvailable") == ("True" if fits else "False")
    assert (result.models is not None) is fits


def test_without_a_limit_in_the_service_nothing_fits():
    assert status_of(planned(model(), service(limit="")), "MemoryResourceAvailable") == "False"


@pytest.mark.parametrize("parent", [service(ready=False), edited(service())], ids=["not ready", "edited since"])
def test_an_unready_service_keeps_the_list_and_the_address_as_they_are(parent):
    before = {"url": "http://old", "conditions": []}
    result = planned(model(status=before), parent, listed=["north"])
    assert result.models is None
    assert result.status["url"] == "http://old"
    assert status_of(result, "Ready") == "False"


def test_a_server_with_a_model_of_its_own_takes_no_others():
    own = {"model": {"modelFormat": {"name": "sklearn"}, "storageUri": "gs://x"}}
    assert status_of(planned(model(), service(predictor=own)), "IsMMSPredictor") == "False"


def test_deleting_takes_the_model_off_the_list():
    answers = Answers({model_config("fleet", "ns"): config_map("north", "south")})
    text = text_of(finalize(model(deleting=True), answers, NOW))
    assert [m["modelName"] for m in json.loads(text)] == ["south"]


BROKEN = {"metadata": {"name": "modelconfig-fleet-0"}, "data": {"models.json": "{]"}}


@pytest.mark.parametrize("listed", [None, BROKEN, config_map("south")])
def test_deleting_is_not_held_up_by_a_list_that_is_gone_or_malformed(listed):
    ending = finalize(model(deleting=True), Answers({model_config("fleet", "ns"): listed}), NOW)
    assert text_of(ending) is None


def test_a_model_without_its_service_is_deleted():
    wanted = plan(observed(model(), None))
    assert [(part.answer, found) for part in wanted.parts for _, found in part.found] == [
        (Retire("its service does not exist"), model())
    ]
    assert claim(observed(model(), None)) is None


def test_a_list_that_was_edited_into_nonsense_is_reported_by_name():
    result = plan_of(observed(model(), service(), (), BROKEN))
    ready = conditions.find(result.status["conditions"], "Ready") or {}
    assert (ready["status"], ready["reason"]) == ("False", "InvalidModelList")
    assert "ConfigMap modelconfig-fleet-0" in ready["message"]


def test_a_list_that_does_not_exist_yet_is_looked_for_again():
    result = plan_of(observed(model(), service()))
    assert (result.models, result.again, status_of(result, "Ready")) == (None, LOOK_AGAIN, "True")


@pytest.mark.parametrize(("written", "patch"), [("1Gi", None), ("1024Mi", {"model": {"memory": "1Gi"}})])
def test_memory_has_one_spelling(written, patch):
    assert planned(model(memory=written), service(limit="4Gi")).spec == patch


def test_a_malformed_neighbour_keeps_no_model_from_being_served():
    broken = {**model("south"), "spec": {"inferenceService": "fleet", "model": {"memory": ["a lot"]}}}
    objects = [
        (INFERENCE_SERVICES, service()),
        *((TRAINED_MODELS, each) for each in (model(), model("west", admitted=True), broken)),
    ]
    answers = Answers({model_config("fleet", "ns"): config_map()})
    found = observe(MemoryReader(objects), model(), answers, NOW)
    assert sorted(each.metadata.name for each in found.siblings) == ["north", "west"]
    [part] = plan(found).parts
    assert isinstance(part.answer, Want)
    assert part.answer.edits


def test_a_model_that_is_heard_of_before_its_service_is_not_deleted():
    """Both are watched apart: of two that were created one after the other, the second may be heard of first."""
    asked = Stored(INFERENCE_SERVICES, "fleet", "ns")
    with pytest.raises(Needs) as raised:
        observe(MemoryReader(), model(), Answers(), NOW)
    assert raised.value.needs == (asked,)
    found = observe(MemoryReader(), model(), Answers({asked: service()}), NOW)
    assert found.service is not None
    assert observe(MemoryReader(), model(), Answers({asked: None}), NOW).service is None
