from __future__ import annotations

import io
import logging

import orjson
import pytest

from isvc.toolkit import logs


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


def test_people_get_lines_they_can_read():
    stream = io.StringIO()
    logs.set_up("debug", json=False, stream=stream)
    logging.getLogger("isvc.toolkit.cache").debug("hello")
    assert stream.getvalue().rstrip().endswith("debug   toolkit.cache: hello")
