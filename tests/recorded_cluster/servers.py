"""A kube-apiserver with all kinds, on which the recorded cases of one profile after another are played or stored."""

from __future__ import annotations

import importlib.util
import json
import sys
from argparse import Namespace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.definitions import write_ours
from tests.recordings import FOLDER

from isvc.kube.objects import Object

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
FLAGS = (
    "--leader-elect=false --webhook-port {webhook_port} --metrics-addr :{metrics_port}"
    " --health-probe-addr :{probe_port} --webhook-cert-dir {cert_dir}"
)
_ADMISSION = "admissionregistration.k8s.io/v1"
OWNERS = (
    (_ADMISSION, "MutatingWebhookConfiguration"),
    (_ADMISSION, "ValidatingWebhookConfiguration"),
    ("serving.kserve.io/v1beta1", "InferenceService"),
    ("serving.kserve.io/v1alpha1", "InferenceGraph"),
    ("serving.kserve.io/v1alpha1", "TrainedModel"),
    ("serving.kserve.io/v1alpha1", "ServingRuntime"),
    ("serving.kserve.io/v1alpha1", "ClusterServingRuntime"),
    ("serving.kserve.io/v1alpha2", "LLMInferenceService"),
    ("serving.kserve.io/v1alpha2", "LLMInferenceServiceConfig"),
)


def conform() -> Any:
    """The module that plays recorded cases; it lies beside the repository."""
    if "conform" not in sys.modules:
        sys.path.insert(0, str(FOLDER))
        spec = importlib.util.spec_from_file_location("conform", FOLDER / "conform.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules["conform"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["conform"])
    return sys.modules["conform"]


class AuditedServer:
    """A kube-apiserver that writes down who asked for what."""

    def __init__(self) -> None:
        module = conform()
        self.cluster = module.Cluster(module.find_assets(), audit=True).start()
        self.kube = module.Kube(self.cluster.url, self.cluster.token)

    def stop(self) -> None:
        self.cluster.stop()

    def audit(self) -> list[Object]:
        return [json.loads(line) for line in self.cluster.audit_log.read_text().splitlines()]


class Servers(AuditedServer):
    """With all kinds, for one profile after another."""

    def __init__(self) -> None:
        super().__init__()
        self.shared: Object = {}
        first = self.prepare("llmisvc")
        first._certificates()
        first._install_crds()
        self.shared = {name: getattr(first, name) for name in ("tmp", "cert_dir", "ca_bundle", "webhook_ports")}

    def prepare(self, profile: str) -> Any:
        """What plays a profile, here."""
        run = profile_run(profile)
        run.cluster, run.kube = self.cluster, self.kube
        run.world = sys.modules["world"].World(self.kube)
        vars(run).update(self.shared)
        return run

    def clear(self, run: Any) -> None:
        """Remove what would concern the next profile: owners, webhooks, configuration and objects of the profile."""
        kube = self.kube
        for version, kind in OWNERS:
            for obj in kube.list(version, kind):
                if obj["metadata"].get("finalizers"):
                    kube.patch(obj, {"metadata": {"finalizers": None}})
                kube.delete(obj)
        for obj in run.profile.get("objects", []):
            kube.delete(obj)
        metadata = {"name": "inferenceservice-config", "namespace": "kserve"}
        kube.delete({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


@cache
def _definitions() -> Path:
    return write_ours(Path(mkdtemp(prefix="isvc-crds-")))


def profile_run(profile: str) -> Any:
    module = conform()
    arguments = Namespace(
        manager=f"{BIN}/isvc-manager {FLAGS}",
        llmisvc=f"{BIN}/llmisvc-manager --metrics-secure=false {FLAGS}",
        crds=_definitions(),
        quiet=1.0,
    )
    cases = [module.Case.load(path, FOLDER / "golden") for path in sorted(FOLDER.glob(f"cases/{profile}/*.yaml"))]
    return module.ProfileRun(profile, cases, arguments)
