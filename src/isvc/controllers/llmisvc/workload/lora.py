"""LoRA adapters: where each one lies in the pod, and the arguments by which the server loads it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from isvc.api.llm.v1alpha2 import LLMInferenceServiceSpec, LoRASpec
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.steps import context
from isvc.kube import gojson
from isvc.kube.objects import Object
from isvc.serving.containers import find_container
from isvc.serving.names import child
from isvc.serving.refused import Refused
from isvc.serving.storage import Source
from isvc.serving.storage.init_container import ModelVolume, mount_models
from isvc.serving.storage.uris import PVC, parse_pvc

# Not under the model's own path: that is mounted read-only, and nothing can be mounted inside.
_FOLDER: Final = "/mnt/lora"
_DOWNLOADED: Final = ("hf://", "s3://")
_FLAG: Final = "--lora-modules"
_LIMITS: Final = {"max_rank": "--max-lora-rank", "max_adapters": "--max-loras", "max_cpu_adapters": "--max-cpu-loras"}
_DOCS: Final = "https://github.com/kserve/kserve/blob/master/docs/samples/llmisvc/lora-adapters/README.md"


@dataclass(frozen=True, slots=True)
class Adapter:
    name: str
    uri: str
    path: str

    @property
    def is_downloaded(self) -> bool:
        return self.uri.startswith(_DOWNLOADED)

    @property
    def source(self) -> Source:
        return Source(self.uri, self.path)


def resolve_adapters(spec: LLMInferenceServiceSpec) -> tuple[Adapter, ...]:
    """Returns the adapters of a merged spec, sorted by name so that their order in the spec changes nothing."""
    with context("failed to enumerate LoRA adapters"):
        return _resolve(spec)


def _resolve(spec: LLMInferenceServiceSpec) -> tuple[Adapter, ...]:
    given = spec.model.lora.adapters if spec.model.lora else ()
    disabled = spec.storage_initializer is not None and spec.storage_initializer.enabled is False
    found: dict[str, Adapter] = {}  # by path
    for entry in sorted(given, key=lambda entry: entry.name or ""):
        adapter = Adapter(name := entry.name or "", entry.uri, f"{_FOLDER}/{_segment(name)}")
        _check(adapter, disabled)
        if namesake := found.get(adapter.path):
            both = f'LoRA adapters "{namesake.name}" and "{adapter.name}"'
            raise Refused(f"{both} would both be mounted at {adapter.path}: rename one of them")
        found[adapter.path] = adapter
    return tuple(found.values())


def attach(observed: Observed, pod: Object, container_name: str, resolved: tuple[Adapter, ...]) -> None:
    """Mounts the adapters that lie on claims, and has the server load all of them, unless its flags say what."""
    if not resolved:
        return
    volumes = [
        ModelVolume(adapter.path, _volume(adapter), *parse_pvc(adapter.uri))
        for adapter in resolved
        if adapter.uri.startswith(PVC)
    ]
    mount_models(pod, container_name, volumes, read_only=True)
    container = find_container(pod, container_name)
    if container is None:
        raise Refused(f'no container "{container_name}" in pod spec for LoRA injection')
    if not _is_configured(container):
        given = observed.spec.model.lora or LoRASpec()
        limits = {flag: getattr(given, name) for name, flag in _LIMITS.items()}
        flags = [f"{flag}={limit}" for flag, limit in limits.items() if limit is not None]
        modules = [_module(name, adapter.path) for adapter in resolved for name in _served_names(observed, adapter)]
        # First, so that arguments of the user win over them.
        container["args"] = ["--enable-lora", *flags, _FLAG, *modules, *(container.get("args") or ())]


def _check(adapter: Adapter, disabled: bool) -> None:
    scheme, separator, _ = adapter.uri.partition("://")
    which = f'LoRA adapter "{adapter.name}"'
    if not separator:
        raise Refused(f'{which}: invalid URI "{adapter.uri}"')
    match scheme:
        case "hf" | "s3":
            remedy = "hf:// and s3:// require the storage initializer — set storageInitializer.enabled to true"
        case "pvc":
            remedy = "pvc:// requires a mounted volume — do not set storageInitializer.enabled to false"
        case "oci":
            alternatives = "use hf://, s3://, or pvc:// instead"
            raise Refused(f"{which}: oci:// is not supported for LoRA adapters; {alternatives} (see {_DOCS})")
        case _:
            supported = "supported schemes are hf://, s3://, pvc://"
            raise Refused(f'{which}: unsupported URI scheme "{scheme}://"; {supported} (see {_DOCS})')
    if disabled:
        raise Refused(f"{which}: {remedy} (see {_DOCS})")


def _segment(name: str) -> str:
    """Returns a name as a folder: nothing that leads out of the parent."""
    segment = re.sub(r"[^a-zA-Z0-9._-]", "-", name)
    return "adapter" if segment in ("", ".", "..") else segment


def _volume(adapter: Adapter) -> str:
    """A volume's name is a DNS label; a hash keeps names apart that are the same once they are one."""
    label = re.sub(r"[^a-z0-9-]", "-", adapter.name.lower()).rstrip("-")
    if label != adapter.name:
        label += "-" + hashlib.sha256(adapter.name.encode()).hexdigest()[:8]
    return child("lora-pvc-", label)


def _served_names(observed: Observed, adapter: Adapter) -> tuple[str, str]:
    return adapter.name, f"publishers/{observed.namespace}/models/{adapter.name}"


def _module(name: str, path: str) -> str:
    # Presets pass arguments through the shell's `eval`: quotes keep the JSON in one piece.
    return f"'{gojson.dumps({'name': name, 'path': path})}'"


def _is_configured(container: Object) -> bool:
    given = [*(container.get("command") or ()), *(container.get("args") or ())]
    given += [str(e.get("value", "")) for e in container.get("env") or () if e["name"] == "VLLM_ADDITIONAL_ARGS"]
    return any(_FLAG in part for part in given)
