"""What a node says of its downloads is read as it was written, and nonsense as nothing."""

from __future__ import annotations

import json

import msgspec
import pytest

from isvc.api.model_downloads import (
    DOWNLOADS,
    GroupStorage,
    ModelDownload,
    decode_downloads,
    encode,
)
from isvc.kube.objects import Object


def node(**annotations: str) -> Object:
    return {"kind": "LocalModelNode", "metadata": {"name": "worker", "annotations": annotations}}


def test_downloads_are_read_as_they_were_written():
    downloads = {
        "iris": ModelDownload(phase="ModelDownloading", bytes=7, total_bytes=9, seconds=1.5, attempts=2, at="now"),
        "team/iris": ModelDownload(phase="ModelDownloadError", error="403 Forbidden"),
    }
    text = encode(downloads)
    assert decode_downloads(node(**{DOWNLOADS: text})) == downloads
    assert json.loads(text)["iris"]["totalBytes"] == 9


def test_disks_are_read_as_they_were_written():
    storage = {"gpus": GroupStorage(used=1, available=2, limit=3), "others": GroupStorage()}
    assert msgspec.json.decode(encode(storage), type=dict[str, GroupStorage]) == storage


@pytest.mark.parametrize("text", ["", "{", "[]", '{"iris": 1}', '{"iris": {"bytes": "many"}}', "\ud800", "[" * 9999])
def test_nonsense_is_nothing(text: str):
    assert decode_downloads(node(**{DOWNLOADS: text})) == {}
    assert decode_downloads({"metadata": {}}) == {}
