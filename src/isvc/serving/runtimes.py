"""Which runtime serves a model: the one it names, or the best of those that offer themselves for its format."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from isvc.api.codec import DecodeError
from isvc.api.completion import read
from isvc.api.inferenceservice.models import ModelFormat, ModelSpec
from isvc.api.protocols import Protocol, rank
from isvc.api.servingruntime import ServingRuntime, ServingRuntimeSpec
from isvc.kube.objects import Object, annotations_of, creation_time_of, name_of
from isvc.serving.refused import Refused

SERVER_TYPE: Final = "serving.kserve.io/server-type"
_SERVER_TYPES_BY_NAME: Final = {
    "kserve-mlserver": "mlserver",
    "kserve-torchserve": "torchserve",
    "kserve-tritonserver": "tritonserver",
    "kserve-tensorflow-serving": "tensorflow-serving",
    "kserve-huggingfaceserver": "huggingfaceserver",
    "kserve-vllmserver": "vllmserver",
}


class ModelRefused(Refused):
    """The model cannot be served as it is. `summary` is for the model status; the message says more."""

    def __init__(self, message: str, *, reason: str, summary: str, remedy: str = "") -> None:
        super().__init__(message, reason=reason, remedy=remedy)
        self.summary = summary


@dataclass(frozen=True, slots=True)
class Runtime:
    name: str
    spec: ServingRuntimeSpec
    annotations: dict[str, str]  # the object's own, not those for its pods
    created: str
    cluster: bool
    problem: str = ""  # why its spec could not be read; such a runtime serves nothing
    selectable: frozenset[str] = frozenset()  # formats that it offers to models that name no runtime

    @classmethod
    def of(cls, obj: Object, *, cluster: bool) -> Runtime:
        problem = ""
        try:
            _, runtime = read(ServingRuntime, obj)
        except DecodeError as error:
            runtime, problem = ServingRuntime(), str(error)
        created = creation_time_of(obj)
        selectable = frozenset(offered.name for offered in runtime.spec.supported_model_formats if offered.auto_select)
        return cls(name_of(obj), runtime.spec, annotations_of(obj), created, cluster, problem, selectable)

    @property
    def server_type(self) -> str:
        """Names the server, for the few settings that depend on it; older runtimes are known by their names."""
        return self.annotations.get(SERVER_TYPE) or _SERVER_TYPES_BY_NAME.get(self.name, "")

    @property
    def formats(self) -> list[str]:
        """Returns the formats that it offers, with their versions."""
        return [f"{each.name} {each.version or ''}".strip() for each in self.spec.supported_model_formats]

    def priority(self, model_format: str) -> int | None:
        """Returns the priority of the first entry for a format."""
        formats = self.spec.supported_model_formats
        return next((offered.priority for offered in formats if offered.name == model_format), None)

    def supports(self, model: ModelFormat, *, chosen: bool) -> bool:
        """Returns whether the format is offered; to models that did not choose this runtime, only with autoSelect."""
        return any(
            offered.name == model.name and model.version in (None, offered.version)
            for offered in self.spec.supported_model_formats
            if chosen or offered.auto_select
        )


@dataclass(frozen=True, slots=True)
class Runtimes:
    """The runtimes that a service may use: those of its namespace hide the cluster's of the same name."""

    namespaced: Sequence[Runtime]
    cluster: Sequence[Runtime]

    def find(self, name: str) -> Runtime | None:
        return next((runtime for runtime in (*self.namespaced, *self.cluster) if runtime.name == name), None)

    def choose(self, model: ModelSpec, *, multi_node: bool) -> Runtime:
        return self._require(model, model.runtime) if model.runtime else self._select(model, multi_node=multi_node)

    def rivals(self, model: ModelSpec, chosen: Runtime, *, multi_node: bool) -> list[Runtime]:
        """Returns other runtimes that might as well have been selected: nothing but their age or name decided."""
        if model.runtime:
            return []
        rank_of_chosen, protocol = _rank(chosen, model.model_format.name), _protocol(model)
        return [
            runtime
            for runtime in (self.cluster if chosen.cluster else self.namespaced)
            if runtime.name != chosen.name
            and _offers(runtime, model, protocol, multi_node=multi_node)
            and _rank(runtime, model.model_format.name) == rank_of_chosen
        ]

    def _require(self, model: ModelSpec, name: str) -> Runtime:
        runtime = self.find(name)
        if runtime is None:
            raise ModelRefused(
                f"No ServingRuntimes or ClusterServingRuntimes with the name: {name}",
                reason="RuntimeNotRecognized",
                summary="Waiting for runtime to become available",
                remedy=f"create it, or choose one of these: {self._names()}",
            )
        if runtime.problem:
            raise ModelRefused(
                f"specified runtime {name} is malformed: {runtime.problem}",
                reason="InvalidPredictorSpec",
                summary=f"Specified runtime is malformed: {runtime.problem}",
            )
        if runtime.spec.is_disabled:
            raise ModelRefused(
                f"specified runtime {name} is disabled",
                reason="RuntimeDisabled",
                summary="Specified runtime is disabled",
                remedy="set its spec.disabled to false, or choose another runtime",
            )
        if model.protocol_version is not None and not runtime.spec.speaks(model.protocol_version):
            raise _not_supported(runtime, "protocol version", map(str, runtime.spec.protocol_versions))
        if not runtime.supports(model.model_format, chosen=True):
            raise _not_supported(runtime, "framework/version", runtime.formats)
        return runtime

    def _select(self, model: ModelSpec, *, multi_node: bool) -> Runtime:
        protocol = _protocol(model)
        for runtimes in (self.namespaced, self.cluster):
            offers = (each for each in runtimes if _offers(each, model, protocol, multi_node=multi_node))
            if ranked := _sort(offers, model.model_format.name):
                # The name counts from here on: a runtime of the namespace hides a cluster's that was selected.
                return self.find(ranked[0].name) or ranked[0]
        version = f" {model.model_format.version}" if model.model_format.version else ""
        malformed = "".join(
            f"; runtime {runtime.name} is malformed: {runtime.problem}"
            for runtime in (*self.namespaced, *self.cluster)
            if runtime.problem
        )
        raise ModelRefused(
            f"no runtime found to support predictor with model type: {model.model_format.name}{version}{malformed}",
            reason="NoSupportingRuntime",
            summary="No runtime found to support specified framework/version",
            remedy=self._other_protocols(model, multi_node=multi_node)
            or f"what can be chosen by itself here: {self._offers() or 'nothing, there is no runtime'}",
        )

    def _other_protocols(self, model: ModelSpec, *, multi_node: bool) -> str:
        """Says what the model would have to speak, where that is all that keeps a runtime from serving it."""
        spoken = {
            str(protocol): runtime.name
            for runtime in (*self.cluster, *self.namespaced)
            for protocol in runtime.spec.protocol_versions
            if _offers(runtime, model, protocol, multi_node=multi_node)
        }
        ways = " or ".join(f"model.protocolVersion: {protocol} ({name})" for protocol, name in sorted(spoken.items()))
        return f"what serves it does not speak {_protocol(model)}: set {ways}" if ways else ""

    def _names(self) -> str:
        return ", ".join(sorted({runtime.name for runtime in (*self.namespaced, *self.cluster)})) or "there is none"

    def _offers(self) -> str:
        """Formats that runtimes offer to models that name no runtime: `lightgbm (mlserver), sklearn (mlserver, …)`."""
        serving: dict[str, set[str]] = {}
        for runtime in (*self.namespaced, *self.cluster):
            if not runtime.spec.is_disabled:
                for offered in runtime.spec.supported_model_formats:
                    if offered.auto_select:
                        serving.setdefault(offered.name, set()).add(runtime.name)
        return ", ".join(f"{name} ({', '.join(sorted(by))})" for name, by in sorted(serving.items()))


def _not_supported(runtime: Runtime, what: str, supported: Iterable[str]) -> ModelRefused:
    return ModelRefused(
        f"specified runtime {runtime.name} does not support specified {what}",
        reason="NoSupportingRuntime",
        summary=f"Specified runtime does not support specified {what}",
        remedy=f"it supports {', '.join(sorted(set(supported))) or 'nothing'}",
    )


def _protocol(model: ModelSpec) -> str:
    return Protocol.V1 if model.protocol_version is None else model.protocol_version


def _offers(runtime: Runtime, model: ModelSpec, protocol: str, *, multi_node: bool) -> bool:
    spec = runtime.spec
    return (
        model.model_format.name in runtime.selectable
        and not spec.is_disabled
        and not spec.is_multi_model
        and spec.is_multi_node == multi_node
        and spec.speaks(protocol)
        and runtime.supports(model.model_format, chosen=False)
    )


def _sort(runtimes: Iterable[Runtime], model_format: str) -> list[Runtime]:
    """Sorts by priority, highest first and those without one last; by protocol, newest first, then by name."""
    ranked = sorted(runtimes, key=lambda runtime: runtime.name)
    ranked.sort(key=lambda runtime: runtime.created, reverse=True)
    ranked.sort(key=lambda runtime: _rank(runtime, model_format))
    return ranked


def _rank(runtime: Runtime, model_format: str) -> tuple[object, ...]:
    return _by_priority(runtime.priority(model_format)), rank(runtime.spec.protocol_versions)


def _by_priority(priority: int | None) -> tuple[bool, int]:
    return priority is None, -(priority or 0)
