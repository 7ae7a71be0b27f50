import json

import pytest

from isvc.api import InferenceService
from isvc.api.trainedmodel import TrainedModel
from isvc.controllers.trainedmodel import model_list
from isvc.controllers.trainedmodel.plan import ALLOCATED_LABEL, PARENT_LABEL, Observed, plan
from isvc.kube import conditions

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
    return Observed(subject, TrainedModel.decode(subject), typed, others, listed, now)


def planned(subject, parent=None, siblings=(), listed=()):
    return plan(observed(subject, parent or service(), siblings, config_map(*listed)))


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
    again = plan(observed(settled, service(), (settled,), listed, "2027-01-01T00:00:00Z"))
    assert (again.models, again.status) == (None, first.status)


@pytest.mark.parametrize(("memory", "fits"), [("512Mi", True), ("513Mi", False)])
def test_memory_counts_the_admitted_models_and_itself_once(memory, fits):
    other = model("south", "512Mi", admitted=True)
    waiting = model("east", "900Mi")
    own_old_version = model("north", "100Mi", admitted=True)
    result = planned(model(memory=memory), siblings=[other, waiting, own_old_version])
    assert (ALLOCATED_LABEL in result.labels) is fits
    assert status_of(result, "MemoryResourceAvailable") == ("True" if fits else "False")
    assert (result.models is not None) is fits


def test_without_a_limit_in_the_service_nothing_fits():
    assert status_of(planned(model(), service(limit="")), "MemoryResourceAvailable") == "False"


def test_an_unready_service_keeps_the_list_and_the_address_as_they_are():
    before = {"url": "http://old", "conditions": []}
    result = planned(model(status=before), service(ready=False), listed=["north"])
    assert result.models is None
    assert result.status["url"] == "http://old"
    assert status_of(result, "Ready") == "False"


def test_a_server_with_a_model_of_its_own_takes_no_others():
    own = {"model": {"modelFormat": {"name": "sklearn"}, "storageUri": "gs://x"}}
    assert status_of(planned(model(), service(predictor=own)), "IsMMSPredictor") == "False"


def test_deleting_takes_the_model_off_the_list_before_the_finalizer_goes():
    result = planned(model(deleting=True), listed=["north", "south"])
    assert [m["modelName"] for m in json.loads(result.models)] == ["south"]
    assert result.finalizer is False


def test_deleting_is_not_held_up_by_a_service_or_list_that_is_gone():
    result = plan(observed(model(deleting=True), None))
    assert (result.finalizer, result.models, result.delete) == (False, None, False)


def test_a_model_without_its_service_is_deleted():
    assert plan(observed(model(), None)).delete


def test_a_list_that_was_edited_into_nonsense_is_reported_by_name():
    broken = {"metadata": {"name": "modelconfig-fleet-0"}, "data": {"models.json": "{]"}}
    with pytest.raises(model_list.UnreadableList, match="ConfigMap modelconfig-fleet-0"):
        plan(observed(model(), service(), (), broken))


@pytest.mark.parametrize(("written", "patch"), [("1Gi", None), ("1024Mi", {"model": {"memory": "1Gi"}})])
def test_memory_has_one_spelling(written, patch):
    assert planned(model(memory=written), service(limit="4Gi")).spec == patch
