"""What is to be done on a node's disk before its downloads are planned."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from isvc.api.localmodel import DOWNLOADED, FAILED, LocalModelNode
from isvc.api.model_downloads import decode_downloads
from isvc.controllers.localmodelnode.disk import Disk, Stock
from isvc.controllers.localmodelnode.downloads import Download
from isvc.kube.objects import Object
from isvc.serving.storage.uris import storage_key


@dataclass(slots=True)
class Chores:
    """`complete`  downloads that ended well, with their Jobs
    `adopt`     models of KServe's
    `expect`    downloads that may start
    `remove`    models that nothing asks for
    `discard`   downloads that nothing asks for, or that turned out too large
    `sources`   where each model that is asked for comes from
    """

    complete: dict[str, Download] = field(default_factory=dict)
    adopt: set[str] = field(default_factory=set)
    expect: set[str] = field(default_factory=set)
    remove: set[str] = field(default_factory=set)
    discard: set[str] = field(default_factory=set)
    sources: dict[str, str] = field(default_factory=dict, compare=False)

    def leave_alone(self, keys: Collection[str]) -> None:
        """Spares models that others want."""
        self.remove -= set(keys)
        self.discard -= set(keys) - self.sources.keys()

    def do(self, disk: Disk, now: str) -> None:
        """Removes first, for the space that it makes."""
        for key in sorted(self.remove):
            disk.remove(key)
        for key in sorted(self.discard):
            disk.discard(key)
        for key, download in self.complete.items():
            disk.complete(key, self.sources[key], download.seconds(now), download.attempt)
        for key in sorted(self.adopt):
            disk.adopt(key, self.sources[key])
        for key in sorted(self.expect):
            disk.expect(key, self.sources[key])


def chores_for(raw: Object, stock: Stock, downloads: Collection[Download], in_use: Collection[str]) -> Chores:
    """Returns what is to be done. Where a pod may still write, nothing is."""
    node = LocalModelNode.decode(raw)
    recorded, chores = decode_downloads(raw), Chores()
    busy = {each.key for each in downloads if each.is_under_way} | set(in_use)
    for model in node.spec.local_models:
        key = storage_key(model.source_model_uri)
        source = chores.sources.setdefault(key, model.source_model_uri)
        done = [each for each in downloads if each.key == key and each.succeeded]
        said = recorded.get(model.status_key)
        if key in busy or model.source_model_uri != source:
            continue
        if (receipt := stock.complete.get(key)) is not None:
            if receipt.source not in ("", source):
                chores.remove.add(key)
            continue
        if key in stock.arrived and (ours := [each for each in done if not each.in_place]):
            chores.complete[key] = ours[-1]
        elif key in stock.unproven and (node.status.model_status.get(model.status_key) == DOWNLOADED or done):
            chores.adopt.add(key)
        elif key in stock.incoming and said is not None and said.phase == FAILED and said.bytes:
            chores.discard.add(key)
        else:
            chores.expect.add(key)
    chores.expect -= {*chores.complete, *chores.adopt, *chores.discard}
    chores.remove |= {key for key in stock.folders if key not in chores.sources}
    chores.discard |= {key for key in stock.incoming if key not in chores.sources and key not in busy}
    return chores
