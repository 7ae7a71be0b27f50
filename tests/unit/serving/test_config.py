from __future__ import annotations

import json
from typing import Any

import pytest

from isvc.api.modes import DeploymentMode
from isvc.engine.kind import Wait
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving.config import CONFIG_MAP, Config, ConfigError
from isvc.serving.config.configmap import unknown_keys
from isvc.serving.config.current import Configuration
from isvc.toolkit.cache.memory import MemoryReader

INGRESS = {"ingressGateway": "knative-serving/knative-ingress-gateway"}


def data(**sections: Any) -> dict[str, str]:
    return {name: json.dumps(section) for name, section in sections.items()}


def test_absent_sections_have_defaults():
    config = Config.parse({})
    assert config == Config()
    assert config.ingress.domain_template == "{{ .Name }}-{{ .Namespace }}.{{ .IngressDomain }}"
    assert config.ingress.ingress_domain == "example.com"
    assert config.ingress.url_scheme == "http"
    assert config.deploy.default_mode is DeploymentMode.KNATIVE
    assert config.security.auto_mount_service_account_token is False
    assert "modelFormat" in config.inference_service.service_annotation_disallowed_list
    assert "nvidia.com/gpu" in config.multi_node.gpu_resource_types
    assert config.variant_autoscaler is None


def test_sections_are_read():
    config = Config.parse(
        data(
            ingress=INGRESS | {"localGatewayService": "local", "additionalIngressDomains": ["a.com"]},
            deploy={"defaultDeploymentMode": "RawDeployment"},
            inferenceService={"serviceAnnotationDisallowedList": ["mine"], "resource": {"cpuLimit": "1"}},
            storageInitializer={"enableModelcar": True, "uidModelcar": 1010},
            credentials={"s3": {"s3CABundleConfigMap": "ca"}},
            localModel={"enabled": True, "jobTTLSecondsAfterFinished": 60},
            logger={"storage": {"path": "p", "key": "k", "serviceAccountName": "sa"}},
            router={"headers": {"propagate": ["X-A"]}},
            multiNode={"customGPUResourceTypeList": ["x.com/gpu"]},
        )
    )
    assert config.ingress.knative_local_gateway_service == "local"
    assert config.ingress.additional_ingress_domains == ("a.com",)
    assert config.deploy.default_mode is DeploymentMode.STANDARD
    assert config.inference_service.service_annotation_disallowed_list[-1] == "mine"
    assert config.inference_service.resource.cpu_limit == "1"
    assert config.storage_initializer.oci_mode == "modelcar"
    assert config.credentials.s3.s3_ca_bundle_config_map == "ca"
    assert config.local_model.job_ttl_seconds_after_finished == 60
    assert config.logger.storage is not None
    assert config.logger.storage.service_account_name == "sa"
    assert config.router.headers == {"propagate": ("X-A",)}
    assert config.multi_node.gpu_resource_types[0] == "x.com/gpu"


def test_keys_are_alike_in_capital_and_small_letters_as_in_go():
    found = Config.parse(
        {
            "storageInitializer": '{"CaBundleConfigMapName": "bundle", "MEMORYREQUEST": "7Mi"}',
            "credentials": '{"GCS": {"gcscredentialfilename": "key.json"}}',
        }
    )
    assert found.storage_initializer.ca_bundle_config_map_name == "bundle"
    assert found.storage_initializer.memory_request == "7Mi"
    assert found.credentials.gcs.gcs_credential_file_name == "key.json"


def test_sections_may_be_yaml():
    text = "ingressGateway: ns/gate  # a comment\nadditionalIngressDomains:\n- a.com\n"
    assert Config.parse({"ingress": text}).ingress.additional_ingress_domains == ("a.com",)
    for broken in ("ingressGateway: [", "just words", "{'a"):
        with pytest.raises(ConfigError, match="ingress is not JSON"):
            Config.parse({"ingress": broken})


def test_keys_that_nobody_knows_are_found_wherever_they_are():
    sections = data(ingress={**INGRESS, "urlSchema": "https"}, credentials={"S3": {"s3Endpint": "x"}})
    assert unknown_keys({**sections, "ingres": "{}", "_example": "docs"}) == [
        "ingres",
        "ingress.urlSchema",
        "credentials.s3.s3Endpint",
    ]


@pytest.mark.parametrize(
    ("section", "text", "where"),
    [
        ("deploy", "{}", "deploy.defaultDeploymentMode is required"),
        ("deploy", '{"defaultDeploymentMode": "Bare"}', "deploy.defaultDeploymentMode must be one of Standard"),
        ("ingress", "{", "ingress is not JSON"),
        ("ingress", "[]", "ingress must be object"),
        ("ingress", "{}", "ingress.ingressGateway is required"),
        ("ingress", '{"ingressDomain": 4}', "ingress.ingressDomain must be str, got int"),
        ("ingress", '{"enableGatewayApi": true, "kserveIngressGateway": "a"}', "ingress.kserveIngressGateway must be"),
        ("ingress", '{"ingressGateway": "a", "pathTemplate": "/{{ .Name"}', "ingress.pathTemplate"),
        ("ingress", '{"ingressGateway": "a", "pathTemplate": "/x"}', "ingress.ingressDomain is required"),
        ("logger", '{"memoryLimit": "much"}', "logger.memoryLimit must be a quantity"),
        ("agent", '{"cpuLimit": ""}', "agent.cpuLimit must be a quantity"),
        ("inferenceService", '{"resource": {"cpuLimit": "q"}}', "inferenceService.resource.cpuLimit must be"),
        ("storageInitializer", '{"ociModelMode": "tar"}', "storageInitializer.ociModelMode must be"),
        ("router", '{"headers": {"a": ["b", 1]}}', "router.headers"),
        ("scheduler", '{"expirationAnnotations": []}', "scheduler.expirationAnnotations must be"),
    ],
)
def test_a_bad_section_is_one_error_that_names_section_and_key(section: str, text: str, where: str):
    with pytest.raises(ConfigError) as caught:
        Config.parse({section: text})
    assert where in str(caught.value)
    assert caught.value.section == section


def test_the_last_good_configuration_stays_in_force():
    reader = MemoryReader()
    configuration = Configuration(reader, "kserve")

    def offer(version: int, sections: dict[str, str]) -> Config | None:
        metadata = {"name": CONFIG_MAP, "namespace": "kserve", "resourceVersion": str(version)}
        reader.put(CONFIG_MAPS, {"metadata": metadata, "data": sections})
        return configuration.in_force()

    assert offer(1, {"deploy": "{}"}) is None
    good = offer(2, data(deploy={"defaultDeploymentMode": "Standard"}))
    assert good is not None
    assert offer(3, {"deploy": "{"}) is good
    assert configuration.problem.startswith(f"{CONFIG_MAP}: deploy is not JSON")
    assert offer(4, {}) == Config()
    reader.remove(CONFIG_MAPS, CONFIG_MAP, "kserve")
    assert configuration.required() == Config()
    with pytest.raises(Wait, match="there is no ConfigMap"):
        configuration.required(is_new=True)
