"""Which cache a service uses, by its marks."""

from __future__ import annotations

import pytest

from isvc.api.annotations import LOCAL_MODEL, LOCAL_MODEL_NAMESPACE
from isvc.controllers.localmodel.entries import cache_used_by
from isvc.kube.objects import Key


@pytest.mark.parametrize(
    ("labels", "cache"),
    [
        ({}, None),
        ({LOCAL_MODEL: "iris"}, Key("", "iris")),
        ({LOCAL_MODEL: "iris", LOCAL_MODEL_NAMESPACE: "team"}, Key("team", "iris")),
        ({LOCAL_MODEL: "iris", LOCAL_MODEL_NAMESPACE: "elsewhere"}, None),
    ],
    ids=["none", "of the cluster", "of its namespace alone", "of another namespace"],
)
def test_a_service_belongs_to_one_cache(labels: dict[str, str], cache: Key | None):
    assert cache_used_by({"metadata": {"name": "s", "namespace": "team", "labels": labels}}) == cache
