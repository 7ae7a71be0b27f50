"""What it costs `isvc up` to create a service among many: requests, which are the same on every machine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.up.machine import Machine, machine, running, until

MANY = 40
SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {{name: many-{number}, annotations: {{serving.kserve.io/deploymentMode: Standard}}}}
spec: {{predictor: {{containers: [{{name: kserve-container, image: "example.com/simulated:1"}}]}}}}
"""
SAMPLE = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def here(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with running(machine(tmp_path_factory.mktemp("up"), models), "--simulate", "--ephemeral") as here:
        yield here


def requests(here: Machine) -> Counter[tuple[str, str, str]]:
    """How often each verb was asked for of each resource and subresource."""
    found: Counter[tuple[str, str, str]] = Counter()
    for labels, value in SAMPLE.findall(here.kubectl("get", "--raw", "/metrics")):
        named = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        found[named["verb"], named["resource"], named["subresource"]] += int(float(value))
    return found


def test_a_service_among_many_is_created_by_few_writes_and_nobody_lists_the_others(here: Machine) -> None:
    before = requests(here)
    here.kubectl("create", "namespace", "many")
    here.run("bash", "-c", 'kubectl create -n many -f - <<< "$0"', "---".join(map(make, range(MANY))))
    ready = "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}"
    until(lambda: here.kubectl("get", "isvc", "-n", "many", "-o", ready).split().count("True") == MANY, "all services")
    cost = requests(here) - before
    writes = sum(count for (verb, *_), count in cost.items() if verb in ("POST", "PUT", "PATCH", "DELETE"))
    assert writes / MANY < 27, cost
    assert cost["PUT", "inferenceservices", "status"] / MANY < 3, cost
    children = ("pods", "events", "deployments", "replicasets", "httproutes", "services", "endpointslices")
    assert sum(cost["LIST", each, ""] for each in children) < MANY, cost


def test_services_at_rest_ask_the_server_for_nothing(here: Machine) -> None:
    """Whatever their number: what goes on is of the machine, and leads to fewer requests than there are services."""

    def conditions() -> int:
        shown = here.kubectl("get", "hpa", "-n", "many", "-o", "jsonpath={.items[*].status.conditions[0].type}")
        return len(shown.split())

    def renewals() -> int:
        return requests(here)["PUT", "leases", ""]

    until(lambda: conditions() == MANY, "the first look of every autoscaler")
    before, first = requests(here), renewals()
    until(lambda: renewals() >= first + 9, "leases that were renewed")  # three programs renew theirs
    cost = requests(here) - before
    of_services = {key: count for key, count in cost.items() if key[0] not in ("GET", "WATCH") and key[1] != "leases"}
    assert sum(of_services.values()) < MANY / 4, of_services


def test_what_no_service_here_needs_is_not_in_memory(here: Machine) -> None:
    """Certificates are made by a process that ends, and Envoy is spoken with in Python."""
    assert here.process is not None
    found = [here.process.pid, *here.processes(b"isvc.local.api_server_program")]
    maps = "".join(Path(f"/proc/{pid}/maps").read_text() for pid in found)
    assert maps.count("/orjson") >= len(found) == 2
    assert not re.findall(r"\S+/(?:grpc|cryptography)/\S+", maps)


def make(number: int) -> str:
    return SERVICE.format(number=number)
