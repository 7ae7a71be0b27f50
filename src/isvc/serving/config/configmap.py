"""The whole ConfigMap as one value: parsed section by section, with defaults filled in.

A ConfigMap that cannot be parsed raises one `ConfigError` that names the section and the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import msgspec
from msgspec.inspect import CollectionType, Field, StructType, Type, UnionType

from isvc.api.codec import locate
from isvc.serving.config import sections
from isvc.serving.config.sections import Section

CONFIG_MAP: Final = "inferenceservice-config"

type_info = cache(msgspec.inspect.type_info)


class ConfigError(ValueError):
    """The ConfigMap says something that cannot be: `section` and `key` say where."""

    def __init__(self, section: str, key: str, problem: str) -> None:
        where = f"{section}.{key}" if key else section
        super().__init__(f"{CONFIG_MAP}: {where} {problem}")
        self.section = section
        self.key = key


VARIANT_AUTOSCALER: Final = "autoscaling-wva-controller-config"


class Config(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Every section, with defaults filled in."""

    inference_service: sections.InferenceServiceConfig = sections.InferenceServiceConfig().complete()
    explainers: sections.ExplainersConfig = sections.ExplainersConfig()
    storage_initializer: sections.StorageInitializerConfig = sections.StorageInitializerConfig()
    credentials: sections.CredentialsConfig = sections.CredentialsConfig()
    ingress: sections.IngressConfig = sections.IngressConfig().complete()
    logger: sections.LoggerConfig = sections.LoggerConfig()
    batcher: sections.BatcherConfig = sections.BatcherConfig()
    agent: sections.AgentConfig = sections.AgentConfig()
    router: sections.RouterConfig = sections.RouterConfig()
    deploy: sections.DeployConfig = sections.DeployConfig()
    metrics_aggregator: sections.MetricsAggregatorConfig = sections.MetricsAggregatorConfig()
    local_model: sections.LocalModelConfig = sections.LocalModelConfig()
    security: sections.SecurityConfig = sections.SecurityConfig()
    service: sections.ServiceConfig = sections.ServiceConfig()
    multi_node: sections.MultiNodeConfig = sections.MultiNodeConfig()
    opentelemetry_collector: sections.OpenTelemetryCollectorConfig = sections.OpenTelemetryCollectorConfig()
    autoscaler: sections.AutoscalerConfig = sections.AutoscalerConfig()
    scheduler: sections.SchedulerConfig = sections.SchedulerConfig()
    variant_autoscaler: sections.VariantAutoscalerConfig | None = msgspec.field(default=None, name=VARIANT_AUTOSCALER)

    @classmethod
    def parse(cls, data: Mapping[str, str]) -> Config:
        """Returns the configuration of a ConfigMap's `data`. Sections that are not there have their defaults."""
        known = (info for info in struct_fields(type_info(cls)) if info.encode_name in data)
        return cls(**{info.name: _section(info, data[info.encode_name]) for info in known})


_OTHERS: Final = ("_example",)


def _section(info: Field, text: str) -> Any:
    name, kind = info.encode_name, _struct(info.type)
    assert kind is not None
    try:
        section: Any = msgspec.convert(_respell(_read(name, text), kind), kind.cls)
    except msgspec.ValidationError as error:
        key, problem = locate(error)
        raise ConfigError(name, key, problem.replace("Expected", "must be").replace("`", "")) from None
    for path, part in _parts(section, ""):
        if found := part.problem():
            raise ConfigError(name, path + found[0], found[1])
    return section.complete()


def unknown_keys(data: Mapping[str, str]) -> list[str]:
    """Returns the keys of a ConfigMap that can be parsed which say nothing to anybody, such as misspelled ones."""
    known = {info.encode_name: info.type for info in struct_fields(type_info(Config))}
    strange = [name for name in data if name not in known and name not in _OTHERS]
    found = (_unknown(_read(name, text), known[name], f"{name}.") for name, text in data.items() if name in known)
    return [*strange, *(key for keys in found for key in keys)]


def _read(name: str, text: str) -> object:
    """Returns the value of a section: JSON, or YAML as people write it."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        problem = f"is not JSON: {error}"
    try:
        value = msgspec.yaml.decode(text)
    except (msgspec.DecodeError, ImportError):
        raise ConfigError(name, "", problem) from None
    if not isinstance(value, dict):
        raise ConfigError(name, "", problem)
    return value


# -- keys -----------------------------------------------------------------------------------------------------------


def _respell(value: object, kind: Type) -> object:
    """Returns the value with its keys as the type spells them: like Go's JSON, small and capital letters are alike."""
    if isinstance(value, list) and isinstance(kind, CollectionType):
        return [_respell(each, kind.item_type) for each in value]
    if not isinstance(value, dict):
        return value
    spellings = {info.encode_name.casefold(): info for info in struct_fields(kind)}
    respelled = {}
    for key, each in value.items():
        info = spellings.get(str(key).casefold())
        respelled[info.encode_name if info else key] = _respell(each, info.type) if info else each
    return respelled


def _unknown(value: object, kind: Type, path: str) -> Iterator[str]:
    if not isinstance(value, dict) or not (known := struct_fields(kind)):
        return
    spellings = {info.encode_name.casefold(): info for info in known}
    for key, each in value.items():
        if info := spellings.get(str(key).casefold()):
            yield from _unknown(each, info.type, f"{path}{info.encode_name}.")
        else:
            yield f"{path}{key}"


def struct_fields(kind: Type) -> tuple[Field, ...]:
    """Returns the fields of a struct, or of the one that may be missing; none for anything else."""
    found = _struct(kind)
    return found.fields if found is not None else ()


def _struct(kind: Type) -> StructType | None:
    kinds = kind.types if isinstance(kind, UnionType) else (kind,)
    return next((each for each in kinds if isinstance(each, StructType)), None)


def _parts(section: Section, path: str) -> list[tuple[str, Section]]:
    parts = [(path, section)]
    for name, encoded in _names(type(section)):
        value = getattr(section, name)
        if isinstance(value, Section):
            parts += _parts(value, f"{path}{encoded}.")
    return parts


@cache
def _names(kind: type[Section]) -> tuple[tuple[str, str], ...]:
    """Returns the fields of a section, and their names in JSON."""
    return tuple((info.name, info.encode_name) for info in msgspec.structs.fields(kind))
