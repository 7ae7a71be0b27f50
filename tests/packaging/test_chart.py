"""The Helm charts as they are rendered: linted, and equal to `isvc manifests`."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from isvc.api.inferencegraph import InferenceGraphSpec
from isvc.api.modes import OLD_SPELLINGS, DeploymentMode
from isvc.cli import chart, manifests
from isvc.controllers.inferencegraph.resolve import Resolved
from isvc.controllers.inferencegraph.router import pod_spec
from isvc.kube.objects import Object, name_of
from isvc.serving.config import Config
from isvc.serving.shipped import shipped_runtimes
from isvc.serving.storage.init_container import init_container

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CHARTS = ROOT / "charts"
DIGEST = f"sha256:{'0' * 64}"
STANDARD_LABELS = {"app.kubernetes.io/instance": "isvc", "app.kubernetes.io/part-of": "isvc"}
CUDA = "ghcr.io/llm-d/llm-d-cuda"
EVERYTHING = [f"monitoring.{each}=true" for each in ("serviceMonitor", "prometheusRule", "dashboard")] + [
    "networkPolicy.enabled=true",
    "priorityClass.create=true",
    'manager.tolerations=[{"operator": "Exists"}]',
]


def helm(*arguments: object) -> str:
    done = subprocess.run([BIN / "helm", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def settings(values: list[str], flag: str = "--set") -> list[str]:
    return [part for value in values for part in (flag, value)]


def objects(text: str) -> dict[tuple[str, ...], Object]:
    return keyed(each for each in yaml.load_all(text, yaml.CSafeLoader) if each)


def keyed(found: Iterable[Object]) -> dict[tuple[str, ...], Object]:
    return {
        (each["apiVersion"], each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each
        for each in found
    }


def isvc_manifests(*arguments: str) -> dict[tuple[str, ...], Object]:
    return objects(CliRunner().invoke(manifests.command, arguments, catch_exceptions=False).output)


def test_charts_are_sound():
    printed = helm("lint", "--strict", CHARTS / "isvc", CHARTS / "isvc-crds")
    assert "2 chart(s) linted, 0 chart(s) failed" in printed


@pytest.mark.parametrize(
    "values",
    [
        [],
        ["certificates.source=cert-manager", "manager.replicas=3"],
        ["certificates.source=secret", "certificates.caBundle=QUJD", "llmisvc.enabled=false"],
        ["manager.enabled=false", "presets.create=false", "config.create=false", "webhooks.enabled=false"],
        ["llmisvc.inManager=true", "localmodel.inManager=true", "certificates.source=cert-manager", *EVERYTHING[:-1]],
        ["runtimes.tag=v1", "image.tag=v2", "monitoring.labels.team=ml", *EVERYTHING[:-1]],
        [
            "manager.podLabels.team=ml",
            "manager.podLabels.control-plane=stolen",
            "manager.podAnnotations.note=said",
            "manager.serviceAnnotations.note=said",
            "manager.extraEnv[0].name=A",
            "manager.extraEnv[0].value=b",
            f"image.digest={DIGEST}",
            "webhooks.clients.configMap=kube-root-ca.crt",
            "webhooks.clients.names[0]=apiserver",
            "podSecurityContext.runAsUser=7",
            "roles.kubernetes=true",
            "roles.kubeflow=true",
            "gateway.create=true",
            "gateway.className=envoy",
            "networkPolicy.enabled=true",
            "networkPolicy.webhooksFrom[0].ipBlock.cidr=10.0.0.0/28",
            f"runtimes.digests.kserve-sklearnserver={DIGEST}",
            f"presets.digests.{CUDA.replace('.', chr(92) + '.')}={DIGEST}",
        ],
        ["manager.metricsSecure=false", "monitoring.podMonitor=true"],
        ["podPrograms.agent=kserve", "podPrograms.storageInitializer=kserve", "config.sections.router.image=mine"],
    ],
    ids=[
        "defaults",
        "cert-manager",
        "given certificates",
        "parts",
        "one process",
        "everything",
        "of a platform",
        "metrics in the clear",
        "programs in pods",
    ],
)
def test_plain_manifests_are_those_of_the_chart(values: list[str], tmp_path: Path):
    rendered = helm("template", "isvc", CHARTS / "isvc", "-n", "serving", *settings(values))
    chosen = tmp_path / "values.yaml"
    chosen.write_text(helm("template", "values", values_printer(tmp_path), *settings(values)))
    assert isvc_manifests("-n", "serving", "-f", str(chosen)) == objects(rendered)


def values_printer(folder: Path) -> Path:
    """A chart that prints the values that `--set` comes to, of which Helm knows more than we do."""
    made = folder / "printer"
    (made / "templates").mkdir(parents=True)
    (made / "Chart.yaml").write_text("{apiVersion: v2, name: printer, version: 0.1.0}")
    (made / "templates" / "values.yaml").write_text("{{ toJson .Values }}")
    return made


def test_a_platform_places_its_own_on_pods_and_services():
    own = {"podLabels": {"team": "ml", "control-plane": "stolen"}, "podAnnotations": {"note": "said"}}
    env = [{"name": "A", "value": "b"}]
    given = {**own, "serviceAnnotations": {"note": "said"}, "extraEnv": env}
    localmodel = {**given, "enabled": True}
    made = chart.render(
        "serving", {"manager": given, "llmisvc": given, "localmodel": localmodel, "image": {"digest": DIGEST}}
    )
    for each in made:
        if each["kind"] == "Deployment":
            template = each["spec"]["template"]
            labels = template["metadata"]["labels"]
            assert each["spec"]["selector"]["matchLabels"].items() <= labels.items()
            assert (labels["team"], template["metadata"]["annotations"]["note"]) == ("ml", "said")
            [container] = template["spec"]["containers"]
            assert env[0] in container["env"]
            assert container["image"] == f"isvc@{DIGEST}"
            assert not {"runAsUser", "runAsGroup", "fsGroup"} & {*template["spec"]["securityContext"]}
        if each["kind"] == "Service":
            assert each["metadata"]["annotations"]["note"] == "said"
        if each["kind"] in ("Deployment", "DaemonSet", "Service", "PodDisruptionBudget"):
            assert each["metadata"]["labels"].items() >= STANDARD_LABELS.items()
    programs = [image for each in made for image in _images(each.get("spec")) if image.startswith("isvc")]
    assert programs == [f"isvc@{DIGEST}"] * 5  # three managers, the node's agent and the storage initializer


@pytest.mark.parametrize("whose", ["kubernetes", "kubeflow"])
def test_people_may_do_with_services_what_their_role_says(whose: str):
    """By parts of roles that are there already, which name them by labels."""
    made = chart.render("kserve", {"roles": {whose: True}})
    prefix = {
        "kubernetes": "rbac.authorization.k8s.io/aggregate-to-",
        "kubeflow": "rbac.authorization.kubeflow.org/aggregate-to-kubeflow-",
    }[whose]
    verbs: dict[str, set[str]] = {}
    for each in made:
        for label in each["metadata"].get("labels") or ():
            if label.startswith(prefix):
                [rule] = [rule for rule in each["rules"] if rule["apiGroups"] == ["serving.kserve.io"]]
                assert {"inferenceservices", "llminferenceservices", "inferencegraphs"} <= {*rule["resources"]}
                verbs.setdefault(label.removeprefix(prefix), set()).update(rule["verbs"])
    reading = {"get", "list", "watch"}
    writing = reading | {"create", "update", "patch", "delete", "deletecollection"}
    assert verbs == {"view": reading, "edit": writing, "admin": writing}


def test_the_gateway_is_the_one_that_routes_name():
    made = chart.render("kserve", {"gateway": {"create": True, "className": "envoy"}})
    [gateway] = [each for each in made if each["kind"] == "Gateway"]
    [config_map] = [each for each in made if name_of(each) == "inferenceservice-config"]
    assert f"kserve/{name_of(gateway)}" == Config.parse(config_map["data"]).ingress.kserve_ingress_gateway
    assert gateway["spec"]["gatewayClassName"] == "envoy"


def test_runtimes_are_left_out():
    every = {name_of(each) for each in shipped_runtimes()}
    made = {name_of(each) for each in chart.render("kserve", {"runtimes": {"exclude": ["default", "kserve-mlserver"]}})}
    assert every - made == {"default", "kserve-mlserver"}


def test_images_of_runtimes_and_presets_are_pinned_by_digest():
    """All of a runtime, whose containers have one image, and one image in all presets; others keep their tags."""
    pinned = {"kserve-huggingfaceserver-multinode": DIGEST, "kserve-mlserver": DIGEST}
    rendered = chart.render("serving", {"runtimes": {"digests": pinned}, "presets": {"digests": {CUDA: DIGEST}}})
    of = {name_of(each): [*_images(each["spec"])] for each in rendered if each["apiVersion"].startswith("serving.")}
    assert of["kserve-huggingfaceserver-multinode"] == [f"kserve/huggingfaceserver@{DIGEST}"] * 2
    assert of["kserve-mlserver"] == [f"docker.io/seldonio/mlserver@{DIGEST}"]
    assert of["kserve-huggingfaceserver"] == ["kserve/huggingfaceserver:v0.20.0"]
    servers = [image for images in of.values() for image in images if image.startswith(CUDA)]
    assert servers
    assert {*servers} == {f"{CUDA}@{DIGEST}"}


def _images(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(image := value.get("image"), str):
            yield image
        for each in value.values():
            yield from _images(each)
    elif isinstance(value, list):
        for each in value:
            yield from _images(each)


def test_metrics_are_where_scrape_jobs_of_kserve_look():
    made = keyed(chart.render("kserve", {"localmodel": {"enabled": True}, "monitoring": {"serviceMonitor": True}}))
    names = ("kserve-controller-manager", "llmisvc-controller-manager", "kserve-localmodel-controller-manager")
    for name in names:  # by the labels of KServe's Services
        [service] = [
            each
            for (_, kind, _, _), each in made.items()
            if kind == "Service" and each["metadata"]["labels"].get("control-plane") == name
        ]
        assert service["metadata"]["labels"]["controller-tools.k8s.io"] == "1.0"
        [port] = service["spec"]["ports"]
        assert (port["name"], port["port"]) == ("https", 8443)
        monitor = made["monitoring.coreos.com/v1", "ServiceMonitor", "kserve", name]["spec"]
        assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        assert {(each["port"], each["scheme"]) for each in monitor["endpoints"]} == {("https", "https")}
    service = made["v1", "Service", "kserve", "kserve-controller-manager-metrics-service"]
    assert service["metadata"]["annotations"] == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "8443",
        "prometheus.io/scheme": "https",
    }
    for name in names:
        assert made["v1", "Service", "kserve", f"{name}-service"]["spec"]["ports"][0]["port"] == 8443
    pod = made["apps/v1", "Deployment", "kserve", "kserve-controller-manager"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert {"--metrics-secure", "--metrics-addr=:8443"} <= {*container["args"]}
    assert {"name": "metrics", "containerPort": 8443} in container["ports"]


@pytest.mark.parametrize("known", ["runtimes", "images of presets", "mode"])
def test_what_the_schema_takes_is_what_there_is(known: str):
    schema = json.loads((CHARTS / "isvc" / "values.schema.json").read_text())["properties"]
    if known == "runtimes":
        shipped, choices = {name_of(each) for each in shipped_runtimes()}, schema["runtimes"]["properties"]
        assert {*choices["exclude"]["items"]["enum"]} == shipped
        assert {*choices["digests"]["propertyNames"]["enum"]} == shipped
    elif known == "images of presets":
        files = (CHARTS / "isvc" / "files" / "presets").iterdir()
        images = {image.split(":")[0] for path in files for image in _images(yaml.safe_load(path.read_text()))}
        assert {*schema["presets"]["properties"]["digests"]["propertyNames"]["enum"]} == images
    else:
        deploy = schema["config"]["properties"]["sections"]["properties"]["deploy"]["properties"]
        assert {*deploy["defaultDeploymentMode"]["enum"]} == {*DeploymentMode, *OLD_SPELLINGS}


@pytest.mark.parametrize("whose", ["isvc", "kserve"])
def test_programs_in_pods_are_ours_or_kserves(whose: str):
    """Every program that the chart's configuration names is one that the image has."""
    chosen = dict.fromkeys(("agent", "router", "storageInitializer"), whose)
    rendered = chart.render("serving", {"podPrograms": chosen, "image": {"repository": "r/isvc", "tag": "v2"}})
    [config_map] = [each for each in rendered if each["metadata"]["name"] == "inferenceservice-config"]
    [container] = [each for each in rendered if each["kind"] == "ClusterStorageContainer"]
    config = Config.parse(config_map["data"])
    programs = [
        config.agent.program,
        pod_spec(Resolved(InferenceGraphSpec(), frozenset()), {}, config.router)["containers"][0],
        init_container(config.storage_initializer, []),
        container["spec"]["container"],
    ]
    found = [(each["image"], each.get("command")) for each in programs]
    if whose == "kserve":
        names = ("agent", "router", "storage-initializer", "storage-initializer")
        tag = chart.complete_values({})["runtimes"]["tag"]
        assert found == [(f"kserve/{name}:{tag}", None) for name in names]
        return
    assert {image for image, _ in found} == {"r/isvc:v2"}
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert all(len(command) == 1 and command[0] in scripts for _, command in found)


def test_plain_manifests_for_some_namespaces_are_those_of_the_chart(tmp_path: Path):
    values = tmp_path / "values.yaml"
    values.write_text("namespaces: [team-a, serving]\nwebhooks: {enabled: false}\nruntimes: {create: false}\n")
    plain = isvc_manifests("-n", "serving", "-f", str(values))
    assert plain == objects(helm("template", "isvc", CHARTS / "isvc", "-n", "serving", "-f", values))
    assert not any("Cluster" in kind for _, kind, _, _ in plain)


def test_managers_are_found_by_their_labels():
    planes = {
        name: each["spec"]["template"]["metadata"]["labels"]["control-plane"]
        for (_, kind, _, name), each in isvc_manifests().items()
        if kind == "Deployment"
    }
    assert planes == {
        "kserve-controller-manager": "kserve-controller-manager",
        "llmisvc-controller-manager": "llminferenceservice-kserve-controller-manager",
    }


@pytest.mark.parametrize("in_manager", ["true", "false"])
def test_services_lead_to_ports_of_pods(in_manager: str):
    where = [f"llmisvc.inManager={in_manager}", f"localmodel.inManager={in_manager}", "localmodel.enabled=true"]
    made = isvc_manifests(*settings(where)).values()
    templates = [each["spec"]["template"] for each in made if each["kind"] == "Deployment"]
    assert len(templates) == (1 if in_manager == "true" else 3)
    ports = {
        (template["metadata"]["labels"]["control-plane"], port["name"])
        for template in templates
        for port in template["spec"]["containers"][0]["ports"]
    }
    services = [each["spec"] for each in made if each["kind"] == "Service"]
    assert len(services) == 7
    for service in services:
        assert (service["selector"]["control-plane"], service["ports"][0]["targetPort"]) in ports


def combinations() -> Iterator[list[Object]]:
    """What the chart makes with network policies, for all choices of what runs, where, and how metrics are served."""
    booleans = [(True, False)] * 6
    for manager, llm, llm_inside, caches, caches_inside, secure in itertools.product(*booleans):
        values = {
            "networkPolicy": {"enabled": True},
            "manager": {"enabled": manager, "metricsSecure": secure},
            "llmisvc": {"enabled": llm, "inManager": llm_inside},
            "localmodel": {"enabled": caches, "inManager": caches_inside},
            **{part: {"create": False} for part in ("runtimes", "presets", "config")},
        }
        with suppress(chart.RefusedValues):
            yield chart.render("serving", values)


def test_network_policies_are_about_the_pods_and_ports_that_there_are():
    kinds = "Deployment", "NetworkPolicy"
    seen = 0
    for made in combinations():
        deployments, policies = ([each["spec"] for each in made if each["kind"] == kind] for kind in kinds)
        chosen = []
        for policy in policies:
            wanted = policy["podSelector"]["matchLabels"].items()
            [pod] = [
                each["template"] for each in deployments if wanted <= each["template"]["metadata"]["labels"].items()
            ]
            chosen.append(pod)
            [container] = pod["spec"]["containers"]
            opened = [port["port"] for rule in policy["ingress"] for port in rule["ports"]]
            assert sorted(opened) == sorted(port["name"] for port in container["ports"])
        assert len(chosen) == len(deployments), "each Deployment has its policy"
        seen += len(chosen)
    assert seen > 50


def test_pods_are_restricted():
    """As the Pod Security Standard `restricted` asks for, and with a read-only root."""
    for manifest in isvc_manifests(*settings(EVERYTHING)).values():
        if manifest["kind"] != "Deployment":
            continue
        pod = manifest["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert {*pod} & {"hostNetwork", "hostPID", "hostIPC"} == set()
        assert all({*volume} <= {"name", "emptyDir", "secret"} for volume in pod["volumes"])
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}
