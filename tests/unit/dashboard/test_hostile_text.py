"""Whatever services, pods and servers say is text on a page, never markup."""

from __future__ import annotations

import re

from isvc.api.resources import INFERENCE_SERVICES
from isvc.dashboard.cluster.scope import Scope
from isvc.dashboard.pages.live import Event
from isvc.dashboard.pages.logs import Line
from isvc.dashboard.pages.rendering import render
from isvc.dashboard.pages.try_it import Answer
from isvc.dashboard.views.overview import Question, overview
from isvc.dashboard.views.rows import row
from isvc.dashboard.views.service import service_page
from isvc.insight.diagnosis.evidence import Evidence
from isvc.insight.diagnosis.finding import Finding

HOSTILE = """</pre><script>alert(1)</script><img src=x onerror="alert(1)">'"><svg/onload=alert(1)>"""
DANGEROUS = re.compile(r"<script>|<img src=x|<svg/onload|[^\\]onerror=\"")


def hostile_service() -> dict:
    condition = {"type": HOSTILE, "status": "False", "reason": HOSTILE, "message": HOSTILE}
    return {
        "kind": "InferenceService",
        "metadata": {"name": HOSTILE, "namespace": HOSTILE, "uid": "1", "creationTimestamp": HOSTILE},
        "spec": {"predictor": {"model": {"modelFormat": {"name": HOSTILE}}}},
        "status": {"conditions": [condition], "url": f"http://x/{HOSTILE}"},
    }


def test_the_overview():
    shown = overview([row(INFERENCE_SERVICES, hostile_service(), [Finding("x", HOSTILE)])], Question(HOSTILE, HOSTILE))
    around = {"title": HOSTILE, "path": "/", "csrf": "", "allow_edit": True, "digest": "", "forbidden": (HOSTILE,)}
    around["lost_since"] = HOSTILE
    for scope in (Scope(), Scope((HOSTILE,), (HOSTILE,)), Scope((HOSTILE,), chosen=True)):
        page = render("overview.html", shown=shown, scope=scope, **around)
        assert not DANGEROUS.search(page)
        assert "&lt;script&gt;" in page


def test_the_page_of_a_service():
    event = {"type": HOSTILE, "reason": HOSTILE, "message": HOSTILE, "involvedObject": {"uid": "1", "name": HOSTILE}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": HOSTILE, "namespace": HOSTILE, "uid": "2"}}
    evidence = Evidence(hostile_service(), pods=[pod], events=[event])
    finding = Finding("x", HOSTILE, HOSTILE, chain=(HOSTILE,), log=(HOSTILE,))
    page = render("service_body.html", shown=service_page(INFERENCE_SERVICES, evidence, [finding]), lost_since="")
    assert not DANGEROUS.search(page)
    assert page.count("&lt;script&gt;") > 5


def test_logs_and_answers():
    for page in (
        render("log_lines.html", lines=[Line(HOSTILE, HOSTILE, HOSTILE, HOSTILE)]),
        render("answer.html", answer=Answer(HOSTILE, HOSTILE, HOSTILE, 0.1)),
        render("failure.html", message=HOSTILE),
    ):
        assert not DANGEROUS.search(page)
        assert "&lt;script&gt;" in page


def test_a_line_end_cannot_begin_an_event_of_its_own():
    sent = Event("lines", "a\r\revent: evil\n\ndata: b").encode().decode()
    assert sent == "event: lines\ndata: a\ndata: \ndata: event: evil\ndata: \ndata: data: b\n\n"
