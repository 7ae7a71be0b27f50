"""The Helm chart of the kinds as it is rendered: equal to `isvc manifests --crds`, and small enough to be a release."""

from __future__ import annotations

import base64
import gzip
import json

from tests.packaging.test_chart import CHARTS, helm, isvc_manifests, keyed, settings

from isvc.kube.objects import Object, dig


def test_plain_kinds_are_those_of_the_chart_and_always_convert():
    compare_kinds(
        "certificates.source=cert-manager", "certificates.caBundle=QUJD", "minimal=true", "inferenceExtension=true"
    )


def test_kinds_are_whole_and_ours_alone_by_default():
    made = kinds_by_helm()
    assert {crd["spec"]["group"] for crd in made.values()} == {"serving.kserve.io"}
    for crd in made.values():
        [*_, version] = crd["spec"]["versions"]
        assert dig(version, "schema", "openAPIV3Schema", "properties", "spec", "properties")
    everything = kinds_by_helm("inferenceExtension=true").values()
    assert {"inference.networking.k8s.io", "serving.kserve.io"} < {crd["spec"]["group"] for crd in everything}


def kinds_by_helm(*values: str) -> dict[tuple[str, ...], Object]:
    printed = helm("template", "isvc-crds", CHARTS / "isvc-crds", "-n", "serving", *settings([*values]))
    made = (each.partition("\n")[2] for each in printed.split("---\n")[1:])  # without the line that names its source
    return keyed(map(json.loads, made))  # they are JSON, which takes YAML's parser seconds


def compare_kinds(*values: str) -> None:
    """Holds what helm makes of the kinds' chart against what `isvc manifests` prints."""
    chart = kinds_by_helm(*values)
    assert isvc_manifests("--crds", "-n", "serving", *settings([*values])) == chart
    several = [crd for crd in chart.values() if len(crd["spec"]["versions"]) > 1]
    assert several
    for crd in several:
        service = dig(crd, "spec", "conversion", "webhook", "clientConfig", "service")
        assert service["namespace"] == "serving"


def test_a_release_of_the_kinds_leaves_room_in_its_secret():
    """Helm keeps the chart and what it made of it in one Secret, of a megabyte at most."""
    folder = CHARTS / "isvc-crds"
    files = [base64.b64encode(path.read_bytes()).decode() for path in sorted(folder.rglob("*")) if path.is_file()]
    release = json.dumps({"chart": files, "manifest": helm("template", "isvc-crds", folder)}).encode()
    assert len(base64.b64encode(gzip.compress(release))) < 2**20 / 2
