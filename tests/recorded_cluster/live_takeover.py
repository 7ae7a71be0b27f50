"""Takes over services from KServe's own controllers while they live, and gives them back.

    python -m tests.recorded_cluster.live_takeover CHECKOUT [PROFILE ...]

CHECKOUT is one of KServe, whose controllers are built from it with Go. On a real kube-apiserver they make services of
many shapes, by recorded cases; they become ready, and their pods have addresses. Then `isvc preflight --takeover`
looks, our manager is started over what is there, and after it KServe's again. Every object that either of them wrote
is printed with what changed in it. It fails if a pod template, an address or a certificate did, or if something was
deleted.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from tests.recorded_cluster.servers import BIN, FLAGS, Servers, conform
from tests.recordings import FOLDER

from isvc.kube.objects import Object


class HandOver(NamedTuple):
    """A controller of KServe's, the program that takes its place, and the cases that they are shown with."""

    profile: str
    package: str
    program: str
    kinds: tuple[tuple[str, str], ...]
    cases: tuple[str, ...]

    @property
    def role(self) -> str:
        """Returns what the player of cases calls such a controller."""
        return Path(self.package).name


LLM = HandOver(
    profile="llmisvc",
    package="./cmd/llmisvc",
    program="llmisvc-manager --metrics-secure=false",
    kinds=(("serving.kserve.io/v1alpha2", "LLMInferenceService"),),
    cases=(
        "llmisvc/llm-lws-data-parallel",
        "llmisvc/llm-metadata-propagation",
        "llmisvc/llm-minimal-hf",
        "llmisvc/llm-scaling-direct-keda",
        "llmisvc/llm-scaling-hpa",
        "llmisvc/llm-storage-s3-credentials",
        "llmisvc-routing/llm-pd-multi-node",
        "llmisvc-routing/llm-pd-single-node",
        "llmisvc-routing/llm-route-without-scheduler",
        "llmisvc-routing/llm-router-group",
        "llmisvc-routing/llm-router-scheduler",
        "llmisvc-routing/llm-scheduler-config-ref",
    ),
)
_SERVICES = (("serving.kserve.io/v1beta1", "InferenceService"), ("serving.kserve.io/v1alpha1", "InferenceGraph"))
STANDARD = HandOver(
    profile="standard-ingress",
    package="./cmd/manager",
    program="isvc-manager",
    kinds=_SERVICES,
    cases=(
        "standard-ingress/sklearn-minimal-standard-ingress",
        "standard-ingress/std-custom-predictor",
        "standard-ingress/std-deployment-strategy",
        "standard-ingress/std-keda-resource",
        "standard-ingress/std-labels-annotations",
        "standard-ingress/std-merge-container",
        "standard-ingress/std-runtime-auto-v2",
        "standard-ingress/std-transformer-collocation",
        "standard-ingress/std-update-fields",
    ),
)
KNATIVE = HandOver(
    profile="knative-istio",
    package="./cmd/manager",
    program="isvc-manager",
    kinds=_SERVICES,
    cases=(
        "knative-istio/graph-nested-nodes",
        "knative-istio/graph-sequence",
        "knative-istio/graph-settings",
        "knative-istio/graph-standard",
    ),
)
HAND_OVERS = (LLM, STANDARD, KNATIVE)
DEPLOYMENTS = ("apps/v1", "Deployment")
PRESETS = ("serving.kserve.io/v1alpha2", "LLMInferenceServiceConfig")
HARM = re.compile(
    r"^deleted |^wrote \S+/((Deployment|LeaderWorkerSet|Service)\S* spec\.\S*[tT]emplate|Service/\S+ spec\.clusterIP"
    r"|Secret/\S+ data|\S+ status\.(url|address))"
)


class LiveTakeOver:
    """Services of KServe's controller on a kube-apiserver, which are handed from one controller to another."""

    def __init__(self, servers: Servers, what: HandOver, controller: str, presets: Sequence[Object]) -> None:
        self._what, self._run, self._presets = what, servers.prepare(what.profile), presets
        case = conform().Case
        self._run.cases = [case.load(FOLDER / f"cases/{name}.yaml", FOLDER / "golden") for name in what.cases]
        setattr(self._run.args, what.role, controller)
        self._namespaces = {case.namespace for case in self._run.cases}

    def begin(self) -> None:
        """Let the controller make the services, and the rest of the cluster run their pods."""
        self._run._install_base()
        self._install_presets()
        self._run._start_controllers()
        self._run._register_webhooks()
        self._run._play()
        for case in self._run.cases:
            self._run_pods(case)
        self._settle()

    def _install_presets(self) -> None:
        """Those of the version that is taken over, in the place of the recordings'."""
        for preset in self._run.kube.list(*PRESETS) if self._presets else ():
            self._run.kube.delete(preset)
        for preset in self._presets:
            self._run.kube.create({**preset, "metadata": {**preset["metadata"], "namespace": "kserve"}})

    def stop(self) -> None:
        self._run._stop_controllers()
        self._run.controllers.clear()

    def preflight(self) -> None:
        command = [str(BIN / "isvc"), "preflight", "--takeover", "-n", "kserve"]
        subprocess.run(command, env={**os.environ, "KUBECONFIG": str(self._run.cluster.kubeconfig)}, check=True)

    def hand_over(self, controller: str) -> list[str]:
        """Start the controller over what is there; gives what it changed."""
        self.stop()
        setattr(self._run.args, self._what.role, controller)
        before = self._objects()
        self._run._start_controllers()
        self._settle()
        return list(changes(before, self._objects()))

    def ready(self) -> tuple[int, int]:
        """How many services are ready, of how many."""
        services = [service for kind in self._what.kinds for service in self._run.kube.list(*kind)]
        conditions = [(service.get("status") or {}).get("conditions") or [] for service in services]
        ready = [any(each["type"] == "Ready" and each["status"] == "True" for each in found) for found in conditions]
        return sum(ready), len(ready)

    def _settle(self) -> None:
        self._run._settle(self._namespaces)
        while self._run.world.make_ready(self._namespaces):
            self._run._settle(self._namespaces)

    def _run_pods(self, case: Any) -> None:
        """A pod with an address for each Deployment: the certificates of services name them."""
        found = (each["metadata"]["name"] for each in self._run.kube.list(*DEPLOYMENTS, case.namespace))
        for number, name in enumerate(found, 1):
            address = f"10.1.{len(case.name)}.{number}"
            status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
            owner = {"apiVersion": DEPLOYMENTS[0], "kind": DEPLOYMENTS[1], "metadata": {"name": name}}
            self._run._do_pods(case, {"from": owner, "name": f"{name}-pod", "status": status})

    def _objects(self) -> dict[str, Object]:
        """All that is there, as it is; of Secrets the digests."""
        snapshot = sys.modules["snapshot"]
        kinds = (*snapshot.present_kinds(self._run.kube), *snapshot.CLUSTER_KINDS)
        found = (obj for kind in kinds for obj in self._run.kube.list(*kind))
        return {f"{obj['metadata'].get('namespace', '')}/{snapshot.key(obj)}": _masked(obj) for obj in found}


def _masked(obj: Object) -> Object:
    if obj["kind"] == "Secret":
        obj["data"] = {
            name: hashlib.sha256(value.encode()).hexdigest() for name, value in (obj.get("data") or {}).items()
        }
    obj["metadata"].pop("managedFields", None)
    return obj


def changes(before: dict[str, Object], after: dict[str, Object]) -> Iterator[str]:
    for key in sorted(before.keys() | after.keys()):
        if key not in before or key not in after:
            yield f"{'deleted' if key in before else 'created'} {key}"
            continue
        for line in sys.modules["snapshot"].differences(before[key], after[key]):
            yield f"wrote {key} {line}"


def build(what: HandOver, checkout: Path, folder: Path) -> str:
    """The command of KServe's controller, built in the folder."""
    program = folder / f"kserve-{what.role}"
    subprocess.run(["go", "build", "-o", program, what.package], cwd=checkout, check=True)
    secure = "--metrics-secure=false " if what is LLM else ""
    return f"{program} {secure}{FLAGS.replace(' --webhook-cert-dir {cert_dir}', '')}"


def presets_of(what: HandOver, checkout: Path) -> list[Object]:
    files = sorted((checkout / "config" / "llmisvcconfig").glob("config-*.yaml")) if what is LLM else []
    return [yaml.safe_load(path.read_text()) for path in files]


def there_and_back(take_over: LiveTakeOver, what: HandOver, theirs: str) -> list[str]:
    """Hand the services to our manager, and back; gives what must not have changed."""
    ours = f"{BIN}/{what.program} {FLAGS}"
    take_over.begin()
    print("{} of {} services are ready".format(*take_over.ready()), flush=True)
    take_over.preflight()
    harm: list[str] = []
    for name, controller in ((f"{what.profile}: ours over KServe's", ours), ("KServe's over ours", theirs)):
        changes = take_over.hand_over(controller)
        print(f"{name}: {len(changes)} changes, {take_over.ready()[0]} ready", *changes, sep="\n  ", flush=True)
        harm += filter(HARM.search, changes)
    return harm


def hand_over(what: HandOver, checkout: Path) -> list[str]:
    """Hand over the services of a profile on a cluster of their own; gives what must not have changed."""
    with tempfile.TemporaryDirectory() as folder:
        theirs = build(what, checkout, Path(folder))
        servers = Servers()
        take_over = LiveTakeOver(servers, what, theirs, presets_of(what, checkout))
        try:
            return there_and_back(take_over, what, theirs)
        finally:
            take_over.stop()
            servers.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("profiles", nargs="*", default=[each.profile for each in HAND_OVERS])
    arguments = parser.parse_args()
    chosen = [each for each in HAND_OVERS if each.profile in arguments.profiles]
    harm = [line for each in chosen for line in hand_over(each, arguments.checkout)]
    if harm:
        sys.exit("\n  ".join(["this must not change:", *harm]))
    print("passed: no pod template, address or certificate changed")


if __name__ == "__main__":
    main()
