"""What a fresh installation holds before anybody adds to it: the configuration, runtimes, storage and LLM presets."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Final

import orjson

from isvc.insight.rendering.documents import read
from isvc.kube.objects import Object
from isvc.local.install.config import config_map
from isvc.serving.llm.shipped import shipped_presets

DOMAIN: Final = "example.com"


def shipped_config(namespace: str) -> Object:
    """The configuration of `isvc up`, on a domain that stands for the cluster's."""
    shipped = config_map(namespace, 0)
    return with_section(shipped, "ingress", ingressDomain=DOMAIN)


def with_section(config: Object, name: str, **values: object) -> Object:
    """The ConfigMap with other values in a section."""
    data = config.get("data") or {}
    section = {**orjson.loads(data.get(name) or "{}"), **values}
    return {**config, "data": {**data, name: orjson.dumps(section).decode()}}


def shipped_objects(namespace: str) -> Iterator[Object]:
    """Runtimes, storage containers and presets."""
    runtimes = files("isvc.local.install").joinpath("runtimes.yaml").read_text()
    yield from (document.obj for document in read(runtimes))
    for preset in shipped_presets():
        yield {**preset, "metadata": {**preset["metadata"], "namespace": namespace}}
