"""Quotas on a server that keeps their status: what is used follows what is there, and nothing exceeds it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.waiting import until

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
SECRETS = "/api/v1/namespaces/default/secrets"
PODS = "/api/v1/namespaces/default/pods"
controllers = pytest.mark.parametrize("http", [{"controllers": True}], indirect=True)


def used(http) -> dict[str, str]:
    [quota] = http.server.store.list("resourcequotas", "default")
    return (quota.parse().get("status") or {}).get("used") or {}


def pod(name: str, cpu: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}}
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}}


@controllers
async def test_what_is_used_is_counted_from_what_is_there(http):
    await http.create(PODS, **pod("early", "250m"))
    await http.create(QUOTAS, metadata={"name": "q"}, spec={"hard": {"requests.cpu": "1", "count/secrets": "5"}})
    await until(lambda: used(http) == {"requests.cpu": "250m", "count/secrets": "0"})
    await http.create(PODS, **pod("late", "500m"))
    assert used(http)["requests.cpu"] == "750m"  # charged before the pod was stored
    refused = await http.ask("POST", PODS, pod("too-much", "300m"))
    assert refused.code == 403
    assert refused.message.endswith(
        "exceeded quota: q, requested: requests.cpu=300m, used: requests.cpu=750m, limited: requests.cpu=1"
    )
    await http.ask("DELETE", f"{PODS}/early")
    await until(lambda: used(http)["requests.cpu"] == "500m")
    await http.create(PODS, **pod("fits-now", "300m"))


@controllers
async def test_writes_at_the_same_time_do_not_exceed_a_quota_together(http):
    await http.create(QUOTAS, metadata={"name": "q"}, spec={"hard": {"count/secrets": "3"}})
    await until(lambda: used(http) == {"count/secrets": "0"})
    attempts = [http.ask("POST", SECRETS, {"metadata": {"name": f"c{number}"}}) for number in range(20)]
    codes = [answer.code for answer in await asyncio.gather(*attempts)]
    assert sorted(codes) == [201] * 3 + [403] * 17
