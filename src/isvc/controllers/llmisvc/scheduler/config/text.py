"""EndpointPickerConfigs as text: read from YAML, and written the way Go programs write YAML.

The text is an argument of a container, so a letter that differs restarts the endpoint picker.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import orjson
import yaml

from isvc.kube import go_yaml
from isvc.kube.objects import Object

_LITERAL, _QUOTED = "|", '"'
_LARGEST = 2**63
_MOST_ALIASED = 100_000  # values; nine lines of aliases of aliases stand for billions
_PLAIN = "tag:yaml.org,2002:str"
_BOOLEANS_OF_GO = ("y", "Y", "n", "N")


class _Dumper(yaml.CSafeDumper):
    pass


def _represent_text(dumper: yaml.CSafeDumper, text: str) -> yaml.Node:
    if "\n" in text:
        return dumper.represent_scalar(_PLAIN, text, _LITERAL)
    looks_like = dumper.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    is_number = go_yaml.NUMBER.fullmatch(text) is not None
    is_plain = looks_like == _PLAIN and text not in _BOOLEANS_OF_GO and not is_number
    return dumper.represent_scalar(_PLAIN, text, None if is_plain else _QUOTED)


_Dumper.add_representer(str, _represent_text)


def load(text: str) -> Any:
    """Returns what the text says; None for text that is no YAML."""
    return orjson.loads(_as_json(text))


def load_config(text: str) -> Object | None:
    """Returns the configuration in the text.

    None where there is none that could be rewritten: it has to be of a kind.
    """
    config = load(text)
    return config if isinstance(config, dict) and isinstance(config.get("kind"), str) and config["kind"] else None


def dump(config: Object, *, sort: bool = True) -> str:
    return _as_yaml(orjson.dumps(_sort(config) if sort else config))


# Most services have the same configuration, and YAML is slow. The author of a service writes it.
@lru_cache(maxsize=256)
def _as_json(text: str) -> bytes:
    try:
        go_yaml.check_shape(text, most_aliased=_MOST_ALIASED)
        return orjson.dumps(yaml.load(text, go_yaml.Loader))  # noqa: S506 - it is a safe one
    except (yaml.YAMLError, go_yaml.UnfitForUse, orjson.JSONEncodeError):
        return b"null"


@lru_cache(maxsize=256)
def _as_yaml(document: bytes) -> str:
    return str(yaml.dump(orjson.loads(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True))


def _sort(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sort(value[key]) for key in sorted(value, key=_order)}
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST:
        return int(value)
    return [_sort(item) for item in value] if isinstance(value, list) else value


@lru_cache(maxsize=1024)
def _order(key: str) -> tuple[tuple[bool, str], ...]:
    """Letters come after everything else."""
    return tuple((letter.isalpha(), letter) for letter in str(key))
