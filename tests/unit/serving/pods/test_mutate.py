"""What is added to pods, piece by piece; the recordings in test_recorded_pods.py show whole pods."""

from __future__ import annotations

import base64
import json
from typing import Any, ClassVar

import pytest
from tests.answers import lookup

from isvc.api.annotations import LOCAL_MODEL, LOCAL_MODEL_PVC_NAME, LOCAL_MODEL_SOURCE_URI
from isvc.kube.objects import Object, deep_copy
from isvc.serving import annotations as names
from isvc.serving.config import Config
from isvc.serving.containers import find_container
from isvc.serving.pods import PodFacts, mutate_pod
from isvc.serving.refused import Refused


def pod(*containers: Object, labels: dict[str, str] | None = None) -> Object:
    return annotated(*containers, annotations={}, labels=labels)


def annotated(*containers: Object, annotations: dict[str, str], labels: dict[str, str] | None = None) -> Object:
    return {
        "metadata": {"name": "p", "labels": {names.SERVICE: "s", **(labels or {})}, "annotations": annotations},
        "spec": {"containers": list(containers) or [{"name": "kserve-container"}]},
    }


def mutated(made: Object, service: Object | None = None, **data: Any) -> Object:
    config = Config.parse({section: json.dumps(value) for section, value in data.items()})
    stored = {"metadata": {"name": "storage-config"}, "data": {"logs": base64.b64encode(b"{}").decode()}}
    known = lookup("ns", {"default": None, "logger-sa": None, "own": None}, {"storage-config": stored})
    before = deep_copy(made)
    facts = PodFacts(config, known, service=service)
    result = mutate_pod(made, facts)
    assert made == before
    assert mutate_pod(result, facts) == result
    return result


def agent_of(result: Object) -> Object:
    agent = find_container(result["spec"], "agent")
    assert agent is not None
    return agent


def arguments(result: Object) -> dict[str, str]:
    args = agent_of(result)["args"]
    flags = [index for index, word in enumerate(args) if word.startswith("--")]
    ends = [*flags[1:], len(args)]
    return {args[start]: " ".join(args[start + 1 : end]) for start, end in zip(flags, ends, strict=True)}


def test_pods_that_are_not_ours_are_left_alone() -> None:
    other: Object = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}}
    assert mutated(other) is other


def test_a_plain_pod_only_learns_its_metrics_settings() -> None:
    result = mutated(pod(), metricsAggregator={"enableMetricAggregation": "false", "enablePrometheusScraping": "no"})
    assert result["spec"] == pod()["spec"]
    assert result["metadata"]["annotations"] == {
        names.METRIC_AGGREGATION: "false",
        names.PROMETHEUS_SCRAPING: "no",
    }


class TestAccelerators:
    GPU: ClassVar[Object] = {"name": "kserve-container", "resources": {"limits": {"nvidia.com/gpu": "1"}}}

    def test_only_pods_with_a_gpu_choose_nodes(self) -> None:
        wanted = {names.GKE_ACCELERATOR: "t4"}
        assert mutated(annotated(self.GPU, annotations=wanted))["spec"]["nodeSelector"] == {
            "cloud.google.com/gke-accelerator": "t4"
        }
        assert "nodeSelector" not in mutated(annotated(annotations=wanted))["spec"]
        assert "nodeSelector" not in mutated(pod(self.GPU))["spec"]


class TestCaches:
    def test_a_cached_model_is_mounted(self) -> None:
        result = mutated(
            annotated(
                labels={LOCAL_MODEL: "bert"},
                annotations={
                    names.SOURCE_URI: "gs://w/bert/v1",
                    LOCAL_MODEL_SOURCE_URI: "gs://w/bert",
                    LOCAL_MODEL_PVC_NAME: "bert-fast",
                },
            )
        )
        (mount,) = result["spec"]["containers"][0]["volumeMounts"]
        assert mount["subPath"] == "models/9786aa214e938498/v1"
        assert result["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "bert-fast"

    def test_without_its_claim_it_is_refused(self) -> None:
        with pytest.raises(Refused, match="gs://w/bert"):
            mutated(annotated(labels={LOCAL_MODEL: "bert"}, annotations={names.SOURCE_URI: "gs://w/bert"}))


class TestIstio:
    STATUS: ClassVar = {"sidecar.istio.io/status": '{"containers": ["proxy"]}'}
    REDIRECT: ClassVar = {"sidecar.istio.io/interceptionMode": "REDIRECT"}
    SERVER: ClassVar[Object] = {"name": "kserve-container"}

    def user(self, *containers: Object, **annotations: str) -> int | None:
        made = annotated(self.SERVER, *containers, annotations={names.SOURCE_URI: "s3://b/m", **annotations})
        user: int | None = mutated(made)["spec"]["initContainers"][0].get("securityContext", {}).get("runAsUser")
        return user

    def test_a_chosen_user(self) -> None:
        assert self.user(**{names.INITIALIZER_UID: "42"}) == 42
        assert self.user(**{names.INITIALIZER_UID: "root", **self.REDIRECT, **self.STATUS}) is None

    def test_the_user_of_the_side_car(self) -> None:
        own: Object = {"name": "proxy", "securityContext": {"runAsUser": 99}}
        assert self.user(own, **self.REDIRECT, **self.STATUS) == 99
        assert self.user({"name": "proxy"}, **self.REDIRECT, **self.STATUS) == 1337

    def test_nothing_to_share(self) -> None:
        proxy: Object = {"name": "proxy"}
        assert self.user(proxy, **self.STATUS) is None
        assert self.user(proxy, **self.REDIRECT) is None
        assert self.user(**self.REDIRECT, **self.STATUS) is None
        assert self.user(proxy, **self.REDIRECT, **{"sidecar.istio.io/status": "{}"}) is None

    def test_an_init_container_of_istio_does_it_alone(self) -> None:
        made = annotated(
            self.SERVER,
            {"name": "proxy"},
            annotations={names.SOURCE_URI: "s3://b/m", **self.REDIRECT, **self.STATUS},
        )
        made["spec"]["initContainers"] = [{"name": "istio-init"}]
        assert "securityContext" not in mutated(made)["spec"]["initContainers"][1]

    def test_a_broken_status_is_told(self) -> None:
        with pytest.raises(Refused, match=r"sidecar\.istio\.io/status"):
            self.user(**self.REDIRECT, **{"sidecar.istio.io/status": "["})


class TestMetrics:
    QUEUE: ClassVar[Object] = {
        "name": "queue-proxy",
        "env": [{"name": "AGGREGATE_PROMETHEUS_METRICS_PORT", "value": "1"}],
    }

    def test_the_queue_proxy_collects(self) -> None:
        made = annotated(
            {"name": "kserve-container"},
            self.QUEUE,
            annotations={names.METRIC_AGGREGATION: "true", names.MODEL_METRICS_PORT: "81"},
        )
        result = mutated(made, metricsAggregator={"enablePrometheusScraping": "true"})
        assert result["spec"]["containers"][1]["env"] == [
            {"name": "AGGREGATE_PROMETHEUS_METRICS_PORT", "value": "9088"},
            {"name": "KSERVE_CONTAINER_PROMETHEUS_METRICS_PORT", "value": "81"},
            {"name": "KSERVE_CONTAINER_PROMETHEUS_METRICS_PATH", "value": "/metrics"},
        ]
        assert result["spec"]["containers"][1]["ports"][0]["containerPort"] == 9088
        assert result["metadata"]["annotations"]["prometheus.io/port"] == "9088"

    def test_scraping_alone(self) -> None:
        result = mutated(pod(), metricsAggregator={"enablePrometheusScraping": "true"})
        assert result["metadata"]["annotations"]["prometheus.io/port"] == "9091"
        assert result["metadata"]["annotations"]["prometheus.io/path"] == "/metrics"


class TestAgent:
    def test_a_logger_identifies_its_service(self) -> None:
        made = annotated(
            labels={"component": "predictor", "endpoint": "e"},
            annotations={
                names.LOGGER: "true",
                names.LOGGER_SINK_URL: "http://sink",
                names.LOGGER_METADATA_ANNOTATIONS: "team,missing",
                "team": "blue",
            },
        )
        found = arguments(mutated(made))
        assert found == {
            "--log-url": "http://sink",
            "--source-uri": "p",
            "--log-mode": "all",
            "--inference-service": "s",
            "--namespace": "ns",
            "--endpoint": "e",
            "--component": "predictor",
            "--metadata-annotations": "team=blue",
            "--logger-tls-skip-verify": "false",
            "--component-port": "8080",
        }

    def test_a_services_logger_replaces_the_store_and_keeps_the_rest(self) -> None:
        made = annotated(annotations={names.LOGGER: "true"})
        config = {
            "storage": {"path": "p", "parameters": {"format": "csv"}},
            "batchSize": 3,
            "marshallerUrl": "http://m",
        }
        assert arguments(mutated(made, logger=config))["--log-store-format"] == "csv"
        service = {"spec": {"predictor": {"logger": {"batchSize": 0}}}}
        found = arguments(mutated(made, service, logger=config))
        assert "--log-store-path" not in found
        assert "--log-batch-size" not in found
        assert found["--log-marshaller-url"] == "http://m"

    def test_a_store_is_written_to_with_the_credentials_of_its_key(self) -> None:
        made = annotated(annotations={names.LOGGER: "true", names.LOGGER_SINK_URL: "s3://logs"})
        reference = {"secretKeyRef": {"name": "storage-config", "key": "logs"}}
        for key, env in (("logs", [{"name": "STORAGE_CONFIG", "valueFrom": reference}]), ("missing", [])):
            storage = {"key": key, "path": "p", "parameters": {"format": "csv"}}
            service = {"spec": {"predictor": {"logger": {"storage": storage}}}}
            assert agent_of(mutated(made, service))["env"] == env

    def test_a_claim_for_logs_is_mounted(self) -> None:
        result = mutated(annotated(annotations={names.LOGGER: "true", names.LOGGER_SINK_URL: "pvc://team/iris"}))
        assert result["spec"]["volumes"] == [{"name": "agent-logs", "persistentVolumeClaim": {"claimName": "team"}}]
        assert agent_of(result)["volumeMounts"] == [{"name": "agent-logs", "mountPath": "/mnt/pvc/team"}]
        with pytest.raises(Refused, match="names no claim"):
            mutated(annotated(annotations={names.LOGGER: "true", names.LOGGER_SINK_URL: "pvc://"}))

    def test_a_loggers_ca(self) -> None:
        made = annotated(annotations={names.LOGGER: "true"})
        result = mutated(made, logger={"caBundle": "roots", "caCertFile": "ca.pem", "tlsSkipVerify": True})
        assert arguments(result)["--logger-ca-cert-file"] == "ca.pem"
        assert result["spec"]["volumes"] == [
            {"name": "agent-ca-bundle", "configMap": {"name": "roots", "optional": True}}
        ]

    def test_an_image_of_several_programs_is_told_which(self) -> None:
        wanted = {names.BATCHER: "true"}
        settings = {"image": "isvc:1", "command": ["isvc-agent"]}
        agent = agent_of(mutated(annotated(annotations=wanted), agent=settings))
        assert (agent["image"], agent["command"]) == ("isvc:1", ["isvc-agent"])
        assert "command" not in agent_of(mutated(annotated(annotations=wanted)))

    def test_a_batcher(self) -> None:
        found = arguments(mutated(annotated(annotations={names.BATCHER: "true", names.BATCHER_MAX_LATENCY: "50"})))
        assert found == {"--enable-batcher": "", "--max-latency": "50", "--component-port": "8080"}

    def test_a_puller_shares_its_folder_with_the_server(self) -> None:
        wanted = {
            names.PULLER: "true",
            names.PULLER_CONFIG_PATH: "/mnt/configs",
            names.PULLER_MODEL_DIR: "/mnt/models",
            names.PULLER_CONFIG_VOLUME: "modelconfig-s-0",
        }
        result = mutated(annotated(annotations=wanted))
        assert arguments(result)["--config-dir"] == "/mnt/configs"
        mounted = {c["name"]: [m["mountPath"] for m in c["volumeMounts"]] for c in result["spec"]["containers"]}
        assert mounted == {"kserve-container": ["/mnt/models"], "agent": ["/mnt/models", "/mnt/configs"]}
        for needed in (names.PULLER_MODEL_DIR, names.PULLER_CONFIG_VOLUME):
            with pytest.raises(Refused, match=needed):
                mutated(annotated(annotations={key: value for key, value in wanted.items() if key != needed}))

    def test_the_probe_is_written_as_go_writes_it(self) -> None:
        probe = {
            "periodSeconds": 7,
            "initialDelaySeconds": 0,
            "failureThreshold": 2,
            "httpGet": {
                "port": "http",
                "httpHeaders": [{"value": "<b>", "name": "a"}],
                "scheme": "HTTP",
                "path": "/ready?a&b",
            },
        }
        server = {"name": "kserve-container", "readinessProbe": probe, "securityContext": {"runAsUser": 5}}
        agent = agent_of(mutated(annotated(server, annotations={names.LOGGER: "true"})))
        assert agent["env"][0]["value"] == (
            '{"httpGet":{"path":"/ready?a\\u0026b","port":"http","scheme":"HTTP",'
            '"httpHeaders":[{"name":"a","value":"\\u003cb\\u003e"}]},"periodSeconds":7,"failureThreshold":2}'
        )
        assert agent["readinessProbe"]["httpGet"]["path"] == "/ready?a&b"
        assert agent["securityContext"] == {"runAsUser": 5}

    def test_an_exec_probe_is_not_passed_on(self) -> None:
        server = {"name": "kserve-container", "readinessProbe": {"exec": {"command": ["true"]}}}
        agent = agent_of(mutated(annotated(server, annotations={names.LOGGER: "true"})))
        assert agent["env"] == []
        assert agent["readinessProbe"]["httpGet"]["path"] == "/"

    def test_a_transformer_comes_before_the_server(self) -> None:
        server = {
            "name": "kserve-container",
            "ports": [{"containerPort": 9000}],
            "readinessProbe": {"tcpSocket": {"port": 1}},
        }
        transformer = {"name": "transformer-container", "readinessProbe": {"tcpSocket": {"port": 2, "host": "h"}}}
        result = mutated(annotated(server, transformer, annotations={names.BATCHER: "true"}))
        assert arguments(result)["--component-port"] == "8080"
        assert agent_of(result)["env"][0]["value"] == '{"tcpSocket":{"port":2,"host":"h"}}'
        assert arguments(mutated(annotated(server, annotations={names.BATCHER: "true"})))["--component-port"] == "9000"

    def test_behind_a_queue_proxy_it_takes_over_the_variables(self) -> None:
        queue = {"name": "queue-proxy", "env": [{"name": "USER_PORT", "value": "8080"}, {"name": "X", "value": "y"}]}
        result = mutated(annotated({"name": "kserve-container"}, queue, annotations={names.BATCHER: "true"}))
        assert agent_of(result)["env"] == queue["env"]
        assert find_container(result["spec"], "queue-proxy")["env"][0]["value"] == "9081"  # type: ignore[index]


def test_storage_parameters_have_to_be_a_map_of_strings() -> None:
    for written in ("[1]", "{", '{"a": 1}'):
        wanted = {names.SOURCE_URI: "s3://b/m", names.STORAGE_SPEC: "true", names.STORAGE_SPEC_PARAM: written}
        with pytest.raises(Refused, match="storage-spec-param"):
            mutated(annotated(annotations=wanted))


def test_a_modelcar_comes_after_the_agent_copied_the_server() -> None:
    made = annotated(annotations={names.SOURCE_URI: "oci://h/i", names.BATCHER: "true"})
    result = mutated(made, storageInitializer={"enableModelcar": True, "uidModelcar": 7})
    assert [container["name"] for container in result["spec"]["containers"]] == [
        "kserve-container",
        "agent",
        "modelcar",
    ]
    assert "securityContext" not in agent_of(result)
