"""What a fresh installation holds before anybody adds to it: the configuration, runtimes, storage and LLM presets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import orjson

from isvc.kube.objects import Object
from isvc.serving.shipped import laptop_config, shipped_presets, shipped_runtimes

DOMAIN: Final = "example.com"


def shipped_config(namespace: str) -> Object:
    """Returns the configuration of `isvc up`, on a domain that stands for the cluster's."""
    return laptop_config(namespace, DOMAIN)


def with_section(config: Object, name: str, **values: object) -> Object:
    """Returns the ConfigMap with other values in a section."""
    data = config.get("data") or {}
    section = {**orjson.loads(data.get(name) or "{}"), **values}
    return {**config, "data": {**data, name: orjson.dumps(section).decode()}}


def shipped_objects(namespace: str) -> Iterator[Object]:
    """Yields runtimes, storage containers and presets."""
    yield from shipped_runtimes()
    for preset in shipped_presets():
        yield {**preset, "metadata": {**preset["metadata"], "namespace": namespace}}
