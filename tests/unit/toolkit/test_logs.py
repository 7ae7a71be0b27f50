from __future__ import annotations

import io
import logging

import orjson
import pytest

from isvc.kube.objects import Key
from isvc.toolkit import logs
from isvc.toolkit.reconciling import CURRENT, Reconciling


@pytest.fixture(autouse=True)
def restore():
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_machines_get_one_json_object_a_line():
    stream = io.StringIO()
    logs.set_up("info", stream=stream)
    log = logging.getLogger("isvc.test")
    log.debug("not shown")
    log.info("made %s", "it")
    try:
        raise ValueError("oops")
    except ValueError:
        log.exception("failed")
    lines = [orjson.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["level"], line["logger"], line["msg"]) for line in lines] == [
        ("info", "isvc.test", "made it"),
        ("error", "isvc.test", "failed"),
    ]
    assert lines[1]["stacktrace"].endswith("ValueError: oops")


def test_lines_of_a_reconcile_name_it():
    stream = io.StringIO()
    logs.set_up("info", stream=stream)
    token = CURRENT.set(Reconciling("inferenceservice", Key("models", "iris")))
    try:
        logging.getLogger("isvc.test").info("one")
        logging.getLogger("isvc.test").info("two")
    finally:
        CURRENT.reset(token)
    logging.getLogger("isvc.test").info("three")
    one, two, three = (orjson.loads(line) for line in stream.getvalue().splitlines())
    assert (one["controller"], one["namespace"], one["name"]) == ("inferenceservice", "models", "iris")
    assert one["reconcileID"] == two["reconcileID"]
    assert "reconcileID" not in three


def test_people_get_lines_they_can_read():
    stream = io.StringIO()
    logs.set_up("debug", json=False, stream=stream)
    logging.getLogger("isvc.toolkit.cache").debug("hello")
    assert stream.getvalue().rstrip().endswith("debug   toolkit.cache: hello")


@pytest.mark.parametrize("json", [True, False])
def test_a_line_quotes_no_more_than_fits(json: bool):
    """What a service says goes into messages, and may be a megabyte."""
    stream = io.StringIO()
    logs.set_up("info", json=json, stream=stream)
    logging.getLogger("isvc.test").info("waits: %s", "key" * 300_000)
    (line,) = stream.getvalue().splitlines()
    assert "waits: keykey" in line
    assert len(line) < 20_000
