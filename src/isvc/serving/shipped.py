"""What an installation brings: runtimes, a storage container, the presets of LLMInferenceServices, a configuration.

All of it is YAML. Runtimes and presets are files of the chart, which installs them on a cluster; a laptop,
`isvc render` and tests read the same files. Runtimes are KServe's: names, model formats, priorities, ports and
arguments, so that services choose the same one as with it. A tag of `latest` stands for the chart's release.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

import orjson

from isvc.kube.objects import Object, deep_copy
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving.config import CONFIG_MAP

CHART: Final = files("isvc").joinpath("chart")


def shipped_runtimes() -> tuple[Object, ...]:
    """Returns the runtimes and the storage container; not to be changed."""
    return _load_all("runtimes")


def shipped_presets() -> tuple[Object, ...]:
    """Returns configurations that services take by their shape, without a namespace; not to be changed."""
    return _load_all("presets")


def laptop_config(namespace: str, domain: str) -> Object:
    """Returns the ConfigMap of the controllers as `isvc up` has it, for services on this domain."""
    sections = _load(files("isvc.serving.config").joinpath("laptop.yaml"))
    sections["ingress"]["ingressDomain"] = domain
    return CONFIG_MAPS.manifest(
        {"name": CONFIG_MAP, "namespace": namespace},
        data={name: orjson.dumps(section).decode() for name, section in sections.items()},
    )


def shipped_files(*folders: str) -> list[Traversable]:
    """Returns the files that runtimes and presets are read from, always in the same order."""
    found = (path for folder in folders for path in CHART.joinpath("files", folder).iterdir())
    return sorted(found, key=lambda path: path.name)


@cache
def _load_all(folder: str) -> tuple[Object, ...]:
    return tuple(_load(path) for path in shipped_files(folder))


def _load(path: Traversable) -> Object:
    from isvc.kube.go_yaml import load_all  # 30 ms: managers do without

    [found] = load_all(path.read_bytes())
    return deep_copy(found)  # parts that aliases name are shared no longer
