"""The recorded behaviour of the reference, played against `isvc-manager`.

The cases live beside the repository (`CONFORMANCE`, by default `../shared/conformance`). Where we deliberately answer
better than the reference, the case is named in `expectations.yaml` together with the reason.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BIN = Path(sys.executable).parent
CASES = Path(os.environ.get("CONFORMANCE", ROOT.parent / "shared" / "conformance"))
OURS = ("manager",)  # the programs that exist so far
MANAGER = (
    f"{BIN}/isvc-manager --leader-elect=false --webhook-port {{webhook_port}} --metrics-addr :{{metrics_port}}"
    " --health-probe-addr :{probe_port} --webhook-cert-dir {cert_dir}"
)
SERVER = f"{BIN}/isvc apiserver --kubeconfig {{kubeconfig}} --dir {{dir}}"
# The cases choose free ports, which somebody else may take before the manager listens there.
PORT_TAKEN = re.compile("cannot listen on port|address already in use")
RESULT = re.compile(r"^(ok  |FAIL) (\S+)/(\S+)", re.MULTILINE)


def profiles():
    found = []
    for path in sorted(CASES.glob("profiles/*.yaml")):
        controllers = (yaml.safe_load(path.read_text()) or {}).get("controllers", ["manager"])
        if set(controllers) <= set(OURS):
            found.append(path.stem)
    return found


def deliberate():
    return {entry["case"] for entry in yaml.safe_load((HERE / "expectations.yaml").read_text()) or []}


@pytest.mark.skipif(not CASES.is_dir(), reason=f"no recorded cases in {CASES}")
@pytest.mark.parametrize("profile", profiles())
def test_profile_agrees_with_the_reference(profile, request):
    command = [sys.executable, CASES / "conform.py", "--manager", MANAGER, "--profile", profile]
    command += ["--crds", ROOT / "manifests" / "crds" / "full"]
    if request.config.getoption("--cluster") == "embedded":
        command += ["--server", SERVER]
    played = subprocess.run(command, capture_output=True, text=True, check=False)
    if PORT_TAKEN.search(played.stderr):
        played = subprocess.run(command, capture_output=True, text=True, check=False)
    results = RESULT.findall(played.stdout)
    assert results, played.stdout + played.stderr
    differing = {f"{where}/{case}" for verdict, where, case in results if verdict == "FAIL"}
    assert differing - deliberate() == set(), played.stdout
