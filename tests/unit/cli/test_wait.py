"""Waiting while the API server is away for a moment."""

from __future__ import annotations

from typing import Any

import pytest

from isvc.cli.progress import Progress
from isvc.cli.wait import _wait_for
from isvc.kube.objects import Object
from isvc.toolkit.failure import ClusterError

SERVICE: Object = {"kind": "InferenceService", "metadata": {"name": "iris", "namespace": "team"}}
READY: Object = {**SERVICE, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}


class Client:
    """Finds the service, is cut off twice, and sees that it is ready."""

    def __init__(self) -> None:
        self._answers: list[Any] = [SERVICE, ClusterError("cut off"), ClusterError("refused"), READY]

    async def get(self, *where: object) -> Object:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_a_lost_connection_is_waited_for(monkeypatch, capsys):
    monkeypatch.setattr("isvc.cli.wait.LOOK_EVERY", 0)
    client: Any = Client()
    assert await _wait_for(client, "team", "isvc/iris", float("inf"), Progress("")) == 0
    assert capsys.readouterr().out == "InferenceService team/iris is ready\n"


async def test_a_cluster_that_stays_away_is_named_in_the_end():
    client: Any = Client()
    with pytest.raises(ClusterError, match="cut off"):
        await _wait_for(client, "team", "isvc/iris", 0, Progress(""))
