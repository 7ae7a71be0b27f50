"""The recorded behaviour of the reference, played against our managers.

The cases live beside the repository (`CONFORMANCE`, by default `../shared/conformance`). Where we deliberately answer
better than the reference, the case is named in `expectations.yaml` together with the reason and the differences. A
difference that is not expected fails, and so does an expectation that no longer comes true.

Each profile is played once: one of each family on a real kube-apiserver, the others on the embedded one, which starts
in a fraction of the time. Whether the two answer alike is the matter of `tests/differential`. `--every-profile` plays
all of them on either.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.definitions import write_ours
from tests.recordings import FOLDER as CASES

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BIN = Path(sys.executable).parent
FLAGS = (
    "--leader-elect=false --webhook-port {webhook_port} --metrics-addr :{metrics_port}"
    " --health-probe-addr :{probe_port} --webhook-cert-dir {cert_dir}"
)
MANAGER = f"{BIN}/isvc-manager {FLAGS}"
LLMISVC = f"{BIN}/llmisvc-manager --metrics-secure=false {FLAGS}"
LOCALMODEL = f"{BIN}/localmodel-manager {FLAGS}"
SUITES = (CASES, CASES / "localmodel")
SERVER = f"{BIN}/isvc apiserver --kubeconfig {{kubeconfig}} --dir {{dir}}"
# The cases choose free ports, which somebody else may take before the manager listens there.
PORT_TAKEN = re.compile("cannot listen on port|address already in use")
# Webhooks and defaults; paths and their status; Deployments, HTTPRoutes and deletion; certificates and pools; caches.
ONE_OF_EACH_FAMILY = {"admission", "knative-path", "standard-gateway", "llmisvc-tls", "localmodel-unmanaged"}
RESULT = re.compile(r"^(?:ok  |FAIL) (\S+/\S+)")
DIFFERENCE = re.compile(r"^ {7}(.*)")


def pytest_generate_tests(metafunc):
    if "profile" in metafunc.fixturenames:
        option = metafunc.config.getoption
        is_real = option("--cluster") == "kube-apiserver"
        everything = option("--every-profile")
        chosen = [path for path in profiles() if everything or (path.stem in ONE_OF_EACH_FAMILY) == is_real]
        each = [pytest.param(path.parents[1], path.stem, id=path.stem) for path in chosen]
        metafunc.parametrize(("suite", "profile"), each)


def profiles():
    """Returns their files, those with the most cases first: whoever comes last has a short one."""
    found = [path for suite in SUITES for path in sorted(suite.glob("profiles/*.yaml"))]
    return sorted(found, key=lambda path: -len([*path.parents[1].glob(f"cases/{path.stem}/*.yaml")]))


def expected(profile):
    """By case, the patterns of differences that are meant to be there."""
    entries = yaml.safe_load((HERE / "expectations.yaml").read_text()) or []
    return {entry["case"]: entry["differences"] for entry in entries if entry["case"].startswith(f"{profile}/")}


def differences(output):
    """By case, in what it differs from the recording."""
    found: dict[str, list[str]] = {}
    for line in output.splitlines():
        if result := RESULT.match(line):
            case = found.setdefault(result[1], [])
        elif found and (difference := DIFFERENCE.match(line)):
            case.append(difference[1])
    return found


@pytest.mark.skipif(not CASES.is_dir(), reason=f"no recorded cases in {CASES}")
def test_profile_agrees_with_the_reference(suite, profile, request, tmp_path):
    command: list[str | Path] = [sys.executable, CASES / "conform.py", "--manager", MANAGER, "--llmisvc", LLMISVC]
    command += ["--localmodel", LOCALMODEL, "--suite", suite, "--profile", profile]
    command += ["--crds", write_ours(tmp_path), "--show", "1000"]
    if request.config.getoption("--cluster") == "embedded":
        command += ["--server", SERVER]
    played = subprocess.run(command, capture_output=True, text=True, check=False)
    if PORT_TAKEN.search(played.stderr):
        played = subprocess.run(command, capture_output=True, text=True, check=False)
    found = differences(played.stdout)
    assert found, played.stdout + played.stderr
    allowed = expected(profile)
    surprising = {
        case: rest
        for case, lines in found.items()
        if (rest := [line for line in lines if not any(re.search(each, line) for each in allowed.get(case, ()))])
    }
    assert surprising == {}
    outdated = {
        case: rest
        for case, patterns in allowed.items()
        if (rest := [each for each in patterns if not any(re.search(each, line) for line in found.get(case, ()))])
    }
    assert outdated == {}, "these no longer differ: take them out of expectations.yaml"


@pytest.mark.skipif(not CASES.is_dir(), reason=f"no recorded cases in {CASES}")
def test_every_expectation_is_about_a_case_and_gives_its_reason():
    cases = {f"{path.parent.name}/{path.stem}" for suite in SUITES for path in suite.glob("cases/*/*.yaml")}
    for entry in yaml.safe_load((HERE / "expectations.yaml").read_text()) or []:
        assert entry["case"] in cases
        assert entry["reason"]
        assert entry["differences"]
