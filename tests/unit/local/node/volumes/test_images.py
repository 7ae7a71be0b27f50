"""Volumes that are images, from a registry of this machine."""

from __future__ import annotations

import pytest
from tests.unit.pods.storage_initializer.sites import site
from tests.unit.pods.storage_initializer.test_oci import layer, push

from isvc.local.node.environment import Missing
from isvc.local.node.processes.process import Reaper
from isvc.local.node.volumes.folders import Files, prepare
from isvc.local.node.volumes.images import fetch_images


def pod(reference: str) -> dict:
    volume = {"name": "model", "image": {"reference": reference, "pullPolicy": "IfNotPresent"}}
    return {
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"volumes": [volume, {"name": "x", "emptyDir": {}}]},
    }


async def test_the_models_of_an_image_are_in_its_volume(tmp_path):
    with site() as registry:
        uri = push(registry, layer({"models/model.gguf": b"GGUF", "etc/passwd": b"x"}))
        wanted = pod(uri.removeprefix("oci://"))
        (tmp_path / "volumes").mkdir()
        await fetch_images(wanted, tmp_path / "volumes", Reaper(tmp_path))
        folders = prepare(wanted, Files(), tmp_path, tmp_path / "claims")
        assert [str(path.relative_to(folders["model"])) for path in folders["model"].rglob("*.gguf")] == [
            "models/model.gguf"
        ]
        asked = len(registry.requests)
        await fetch_images(wanted, tmp_path / "volumes", Reaper(tmp_path))
        assert len(registry.requests) == asked  # it is there already


async def test_an_image_that_is_not_there_is_named(tmp_path):
    with site() as registry:
        reference = f"{registry.address.partition('://')[2]}/org/other:v1"
        with pytest.raises(Missing, match=f"volume model: image {reference} cannot be fetched"):
            await fetch_images(pod(reference), tmp_path, Reaper(tmp_path))
