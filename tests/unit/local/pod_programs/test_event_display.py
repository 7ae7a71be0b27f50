"""What runs for Knative's event_display: events in both of their forms, and what is none."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request

import pytest
from tests.ports import free_port
from tests.waiting import wait_until

from isvc.local.node.programs.images import ImageTable
from isvc.local.pod_programs.event_display import describe

IMAGE = "gcr.io/knative-releases/knative.dev/eventing-contrib/cmd/event_display@sha256:0123"
EVENT = """☁️  cloudevents.Event
Context Attributes,
  datacontenttype: application/json
  id: 1
  type: org.kubeflow.serving.inference.request
Data,
  {
    "instances": [
      1
    ]
  }
"""
HEADERS = {"ce-id": "1", "ce-type": "org.kubeflow.serving.inference.request", "content-type": "application/json"}


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        (HEADERS, b'{"instances": [1]}', EVENT),
        (
            {"content-type": "application/cloudevents+json; charset=utf-8"},
            b'{"type": "org.kubeflow.serving.inference.request", "id": "1", "datacontenttype": "application/json",'
            b' "data": {"instances": [1]}}',
            EVENT,
        ),
        ({"ce-type": "t"}, b"a\xff\nb", "☁️  cloudevents.Event\nContext Attributes,\n  type: t\nData,\n  a�\n  b\n"),
        ({"content-type": "application/json"}, b"{}", ""),
        ({"content-type": "application/cloudevents+json"}, b"[", ""),
    ],
    ids=["binary", "structured", "bytes", "no event", "broken"],
)
def test_how_an_event_is_shown(headers: dict[str, str], body: bytes, expected: str) -> None:
    assert describe(headers, body) == expected


def test_the_program_prints_what_it_is_sent(tmp_path) -> None:
    program, port = ImageTable(tmp_path / "images.yaml").find(IMAGE), free_port()
    assert program is not None
    url = f"http://127.0.0.1:{port}"

    def listens() -> bool:
        try:
            return bool(urllib.request.urlopen(url, timeout=60).status == 200)
        except urllib.error.URLError:
            return False

    def post(headers: dict[str, str]) -> int:
        request = urllib.request.Request(url, json.dumps({"instances": [1]}).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    with subprocess.Popen(program.command, env={**os.environ, "PORT": str(port)}, stdout=subprocess.PIPE) as process:
        try:
            wait_until(listens, "the program to listen", within=60)
            assert (post(HEADERS), post({"Content-Type": "text/plain"})) == (202, 400)
        finally:
            process.kill()
        assert process.stdout is not None
        assert process.stdout.read().decode() == EVENT
