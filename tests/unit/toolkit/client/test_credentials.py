"""Credentials that expire, played with a real plugin, a real file and a clock that the test moves."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest
from aiohttp import web
from tests.manual_clock import ManualClock

from isvc.kube.errors import Unauthorized
from isvc.kube.resource import CONFIG_MAPS
from isvc.toolkit.client import Client
from isvc.toolkit.client.kubeconfig import ClusterConfig, ExecPlugin
from isvc.toolkit.failure import ConfigError

COUNTING_PLUGIN = """#!{python}
import json, os, pathlib
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
counter = pathlib.Path(__file__).with_suffix(".count")
count = int(counter.read_text()) + 1 if counter.exists() else 1
counter.write_text(str(count))
status = {{"token": f"token-{{count}}", "expirationTimestamp": "2026-01-01T01:00:00Z"}}
print(json.dumps({{"kind": "ExecCredential", "apiVersion": info["apiVersion"], "status": status}}))
"""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def plugin(tmp_path):
    def make(text: str) -> ExecPlugin:
        path: Path = tmp_path / "plugin"
        path.write_text(text.format(python=sys.executable))
        path.chmod(stat.S_IRWXU)
        return ExecPlugin(str(path), "client.authentication.k8s.io/v1")

    return make


def accept(*tokens: str):
    def answer(request: web.Request) -> web.Response:
        good = request.headers.get("Authorization", "").removeprefix("Bearer ") in tokens
        return web.json_response({"metadata": {}}, status=200 if good else 401)

    return answer


def sent(script) -> list[str]:
    return [request.headers["Authorization"].removeprefix("Bearer ") for request in script.requests]


async def test_a_plugin_is_run_once_and_again_shortly_before_its_token_expires(script, plugin, clock):
    script.will(accept("token-1", "token-2"))
    async with Client.connect(script.config(plugin=plugin(COUNTING_PLUGIN)), clock=clock) as client:
        await client.get(CONFIG_MAPS, "a")
        clock.advance(3580)
        await client.get(CONFIG_MAPS, "a")
        clock.advance(11)
        await client.get(CONFIG_MAPS, "a")
    assert sent(script) == ["token-1", "token-1", "token-2"]


async def test_a_plugin_is_run_again_when_its_token_is_rejected(script, plugin, clock):
    script.will(accept("token-2"))
    async with Client.connect(script.config(plugin=plugin(COUNTING_PLUGIN)), clock=clock) as client:
        await client.get(CONFIG_MAPS, "a")
    assert sent(script) == ["token-1", "token-2"]


async def test_rejected_twice_is_unauthorized(script, plugin, clock):
    script.will(accept())
    async with Client.connect(script.config(plugin=plugin(COUNTING_PLUGIN)), clock=clock) as client:
        with pytest.raises(Unauthorized):
            await client.get(CONFIG_MAPS, "a")
    assert len(script.requests) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#!/bin/sh\necho 'please log in' >&2\nexit 3\n", "plugin failed with status 3: please log in"),
        ("#!/bin/sh\necho 'not json'\n", "plugin did not print an ExecCredential"),
        ("#!/bin/sh\necho '[]'\n", "plugin did not print an ExecCredential"),
    ],
)
async def test_a_plugin_that_fails_is_one_clear_line(script, plugin, clock, text, message):
    async with Client.connect(script.config(plugin=plugin(text)), clock=clock) as client:
        with pytest.raises(ConfigError, match=message) as caught:
            await client.get(CONFIG_MAPS, "a")
    assert "\n" not in str(caught.value)


async def test_a_plugin_that_is_missing_tells_how_to_get_it(script, clock):
    missing = ExecPlugin("/no/such/plugin", "client.authentication.k8s.io/v1", install_hint="install it with care")
    async with Client.connect(script.config(plugin=missing), clock=clock) as client:
        with pytest.raises(ConfigError, match=r"plugin /no/such/plugin: No such file.*; install it with care"):
            await client.get(CONFIG_MAPS, "a")


async def test_a_token_file_is_read_again_every_minute(script, clock, tmp_path):
    script.will(accept("old", "new"))
    token = tmp_path / "token"
    token.write_text("old\n")
    async with Client.connect(script.config(token_file=token), clock=clock) as client:
        await client.get(CONFIG_MAPS, "a")
        token.write_text("new\n")
        await client.get(CONFIG_MAPS, "a")
        clock.advance(61)
        await client.get(CONFIG_MAPS, "a")
    assert sent(script) == ["old", "old", "new"]


async def test_a_token_file_that_is_missing_is_one_clear_line(script, clock, tmp_path):
    async with Client.connect(script.config(token_file=tmp_path / "none"), clock=clock) as client:
        with pytest.raises(ConfigError, match=r"cannot read the token file .*none: No such file"):
            await client.get(CONFIG_MAPS, "a")


@pytest.mark.parametrize(
    ("material", "message"),
    [
        ({"ca": b"nonsense"}, "certificate authority of the cluster is not a valid PEM"),
        ({"insecure": True, "client_certificate": b"nonsense", "client_key": b"x"}, "are not a valid pair"),
    ],
)
def test_broken_certificates_are_one_clear_line(material, message):
    with pytest.raises(ConfigError, match=message):
        Client.connect(ClusterConfig(server="https://127.0.0.1:1", **material))
