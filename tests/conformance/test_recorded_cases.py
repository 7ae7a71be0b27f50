"""The recorded behaviour of the reference, played against `isvc-manager` and `llmisvc-manager`.

The cases live beside the repository (`CONFORMANCE`, by default `../shared/conformance`). Where we deliberately answer
better than the reference, the case is named in `expectations.yaml` together with the reason and the differences. A
difference that is not expected fails, and so does an expectation that no longer comes true.
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
SERVER = f"{BIN}/isvc apiserver --kubeconfig {{kubeconfig}} --dir {{dir}}"
# The cases choose free ports, which somebody else may take before the manager listens there.
PORT_TAKEN = re.compile("cannot listen on port|address already in use")
RESULT = re.compile(r"^(?:ok  |FAIL) (\S+/\S+)")
DIFFERENCE = re.compile(r"^ {7}(.*)")


def profiles():
    return [path.stem for path in sorted(CASES.glob("profiles/*.yaml"))]


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
@pytest.mark.parametrize("profile", profiles())
def test_profile_agrees_with_the_reference(profile, request, tmp_path):
    command: list[str | Path] = [sys.executable, CASES / "conform.py", "--manager", MANAGER, "--llmisvc", LLMISVC]
    command += ["--profile", profile, "--crds", write_ours(tmp_path), "--show", "1000"]
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
    cases = {f"{path.parent.name}/{path.stem}" for path in CASES.glob("cases/*/*.yaml")}
    for entry in yaml.safe_load((HERE / "expectations.yaml").read_text()) or []:
        assert entry["case"] in cases
        assert entry["reason"]
        assert entry["differences"]
