"""Who has to look again when something that services share changes."""

from __future__ import annotations

from typing import Any

import pytest

from isvc.controllers.inferenceservice.affected import Affected
from isvc.kube.objects import Key


class Services:
    """A cache that holds nothing but services."""

    def __init__(self, *services: dict[str, Any]) -> None:
        self._services = list(services)

    def list(self, resource: object, namespace: str = "") -> list[dict[str, Any]]:
        return self._services


def service(name: str, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns"}, "status": status}


REFUSED = {"transitionStatus": "InvalidSpec", "lastFailureInfo": {"reason": "RuntimeDisabled"}}
RUNTIME = {"metadata": {"name": "server", "namespace": "ns"}}


@pytest.mark.parametrize(("gone", "concerned"), [(True, ["refused"]), (False, ["runs", "refused"])])
def test_a_runtime_that_goes_concerns_only_those_it_did_not_serve(gone: bool, concerned: list[str]) -> None:
    cache = Services(service("runs", servingRuntimeName="server"), service("refused", modelStatus=REFUSED))
    affected = Affected(cache, lambda: None)  # type: ignore[arg-type]
    keys = affected.by_lost_runtime(RUNTIME) if gone else affected.by_runtime(RUNTIME)
    assert list(keys) == [Key("ns", name) for name in concerned]
