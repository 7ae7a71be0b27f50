"""What Envoy starts with: it takes all that can be asked for, and values get there as they are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import orjson
import pytest

from isvc.local.gateway.envoy.bootstrap import Front, Settings, bootstrap
from isvc.local.gateway.process import find_envoy

ODD = "/tmp/$log \"'\\ {a: b}, [c] # \n\t&d *e \x7f\x85"


@pytest.mark.parametrize("as_json", [True, False])
def test_envoy_takes_everything_that_can_be_asked_for(tmp_path: Path, as_json: bool) -> None:
    front = Front(("http://allowed.test", "https://also.test"), "/dev/stdout", as_json)
    settings = Settings(8080, 8081, 8443, front, sandbox=True)
    found = bootstrap(settings, ["127.0.0.1", "::1"], login="Basic cG9kOg==", proxy="http://me:secret@proxy.test:3128")
    (tmp_path / "bootstrap.json").write_bytes(orjson.dumps(found))
    command = [str(find_envoy()), "--mode", "validate", "--config-path", "bootstrap.json", "--log-level", "error"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stderr


def test_values_are_not_read_as_configuration() -> None:
    found = bootstrap(Settings(8080, 8081, front=Front((ODD,), ODD)), ["127.0.0.1"], login=ODD)
    front, _, pods = found["static_resources"]["listeners"]
    manager, of_pods = (each["filter_chains"][0]["filters"][0]["typed_config"] for each in (front, pods))
    assert manager["access_log"][-1]["typed_config"]["path"] == ODD
    policy = of_pods["http_filters"][1]["typed_config"]["rules"]["policies"]["no-pod"]
    assert policy["permissions"][0]["not_rule"]["header"]["string_match"]["exact"] == ODD
