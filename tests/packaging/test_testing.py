"""The fixtures that other projects' tests use."""

from __future__ import annotations

import urllib.error

import pytest

from isvc.testing import KubeApi, kube_api, kube_namespace
from isvc.toolkit.client import Client, kubeconfig

__all__ = ["kube_api", "kube_namespace"]

seen: list[str] = []


@pytest.mark.parametrize("number", [1, 2])
def test_each_test_has_a_namespace_of_its_own(kube_api: KubeApi, kube_namespace: str, number: int) -> None:
    path = f"/api/v1/namespaces/{kube_namespace}/configmaps"
    kube_api.ask("POST", path, {"metadata": {"name": "same"}, "data": {"a": str(number)}})
    assert kube_api.ask("GET", f"{path}/same")["data"] == {"a": str(number)}
    assert kube_namespace not in seen
    seen.append(kube_namespace)
    with pytest.raises(urllib.error.HTTPError):
        kube_api.ask("POST", path, {"metadata": {"name": "same"}})


async def test_the_kubeconfig_is_for_any_client(kube_api: KubeApi, kube_namespace: str) -> None:
    from isvc.kube.resource import CONFIG_MAPS

    async with Client.connect(kubeconfig.load(kube_api.kubeconfig)) as client:
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": kube_namespace}}
        assert (await client.create(CONFIG_MAPS, made))["metadata"]["uid"]
