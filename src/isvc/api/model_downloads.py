"""What the program of a node says of its downloads and disks beyond the status that KServe's CRD has room for.

Two annotations of its LocalModelNode, each a JSON object. The program of the node writes them; itself and diagnosis
read those of downloads, and do without where they are missing or make no sense. Those of disks are for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from isvc.api.fields import Spec
from isvc.kube.objects import Object, annotations_of

DOWNLOADS: Final = "isvc.dev/model-downloads"
STORAGE: Final = "isvc.dev/node-storage"


class ModelDownload(Spec):
    """The download of a model to a node: the last one, or the one that is under way.

    `phase`     as in `status.modelStatus`: ModelDownloading, for example
    `bytes`     that the node has so far; `total_bytes` is None while nobody knows
    `seconds`   that the download has taken
    `error`     why the last attempt failed; empty after one that did not
    `attempts`  that were started, this one included
    `at`        when this was written
    """

    phase: str = ""
    bytes: int = 0
    total_bytes: int | None = None
    seconds: float | None = None
    error: str = ""
    attempts: int = 0
    at: str = ""


class GroupStorage(Spec):
    """The disk of a node that belongs to a group of nodes, in bytes. `limit` is the group's `storageLimit`."""

    used: int = 0
    available: int = 0
    limit: int | None = None


def encode(values: Mapping[str, ModelDownload] | Mapping[str, GroupStorage]) -> str:
    """Returns the value of an annotation; keys are those of `status.modelStatus`, or names of LocalModelNodeGroups."""
    return msgspec.json.encode(values, order="sorted").decode()


def decode_downloads(node: Object) -> dict[str, ModelDownload]:
    """Returns what a LocalModelNode says of its downloads, by the keys of its `status.modelStatus`."""
    try:
        return msgspec.json.decode(annotations_of(node).get(DOWNLOADS) or "{}", type=dict[str, ModelDownload])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
