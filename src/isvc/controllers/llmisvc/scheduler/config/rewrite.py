"""Makes the configuration in an endpoint picker's arguments fit the version that its pod runs.

Flags that a newer version refuses become parameters of plugins. That takes a configuration that stands in the
arguments: one in a file is out of reach, and dropping the flags would lose what they say.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from isvc.controllers.llmisvc.scheduler.config import flags, migrations, plugins, text, version
from isvc.controllers.llmisvc.scheduler.config.version import Version
from isvc.kube.objects import Object
from isvc.serving.refused import Refused

TOKENIZER_CONTAINER = "tokenizer"
_DATA_SOURCE_SINCE = Version(0, 10, 0)
_DATA_SOURCE = "metrics-data-source"
_SCHEME, _PATH, _PORT = (f"model-server-metrics-{name}" for name in ("scheme", "path", "port"))
_INSECURE = "model-server-metrics-https-insecure-skip-verify"
_TRUE, _FALSE = (
    frozenset({"1", "t", "T", "TRUE", "true", "True"}),
    frozenset({"0", "f", "F", "FALSE", "false", "False"}),
)


def rewrite(deployment: Object, tokenizer_url: str | None, live_pod: Object | None = None) -> None:
    """Changes the pod in place. Raises `Refused` for flags that its version refuses and that cannot move."""
    template = deployment["spec"]["template"]
    try:
        runs = version.of_template(template)
    except ValueError as error:
        raise Refused(str(error)) from None
    if runs < migrations.FIRST_MIGRATED:
        return
    pod, name = template["spec"], f"{deployment['metadata']['namespace']}/{deployment['metadata']['name']}"
    main = flags.container(pod) or {}
    is_writable = bool(flags.text_positions(main.get("args") or []))
    metrics = _take_metric_flags(pod, name, is_writable)
    source = _take_source_flags(pod, name, is_writable) if runs >= _DATA_SOURCE_SINCE else {}

    arguments = main.get("args") or []
    for position in flags.text_positions(arguments):
        fitted = _fit(arguments[position], runs, tuple(metrics.items()), tuple(source.items()), tokenizer_url)
        if fitted is None:
            break
        arguments[position] = fitted.text
        if runs >= migrations.TOKENIZER_APART and not fitted.asks_tokenizer:
            idle = flags.container(pod, TOKENIZER_CONTAINER)
            pod["containers"] = [each for each in pod["containers"] if each is not idle]
    if migrations.TOKENIZER_APART <= runs < _DATA_SOURCE_SINCE:
        _keep_running_config(main, flags.container(live_pod or {}) or {})


class _Fitted(NamedTuple):
    text: str
    asks_tokenizer: bool  # of the pod itself


# Most services have the same configuration.
@lru_cache(maxsize=256)
def _fit(
    given: str,
    runs: Version,
    metrics: tuple[tuple[str, str], ...],
    source: tuple[tuple[str, Any], ...],
    tokenizer_url: str | None,
) -> _Fitted | None:
    """Returns a configuration for the version that runs; None where there is none that could be rewritten."""
    config = text.load_config(given)
    if config is None:
        return None
    asks = not isinstance(config.get("plugins"), list) or plugins.has_type(config, plugins.PRECISE_PREFIX_SCORER)
    migrations.migrate(config, runs, dict(metrics), tokenizer_url)
    if source:
        plugins.add(config, {"type": _DATA_SOURCE, "parameters": dict(source)})
    return _Fitted(text.dump(config), asks)


def _keep_running_config(main: Object, live: Object) -> None:
    """Leaves a running picker the configuration that differs in nothing but an apiVersion of which it reads both.

    KServe 0.20 gives pickers of 0.9 the old one: to replace it is no reason for a restart.
    """
    running = flags.config_text({"containers": [live]})
    if running is None or main.get("image") != live.get("image"):
        return
    arguments = main.get("args") or []
    for position in flags.text_positions(arguments):
        if migrations.is_current_but_for_api_version(text.load_config(running), text.load_config(arguments[position])):
            arguments[position] = running


def edit_configs(pod: Object, edit: Callable[[Object], None]) -> None:
    """Reads, edits and writes each configuration in the main container's arguments; what is none stays as it is."""
    arguments = (flags.container(pod) or {}).get("args") or []
    for position in flags.text_positions(arguments):
        config = text.load_config(arguments[position])
        if config is None:
            return
        edit(config)
        arguments[position] = text.dump(config)


def _take_metric_flags(pod: Object, name: str, is_writable: bool) -> dict[str, str]:
    containers = pod.get("containers") or []
    if not is_writable:
        if any(flags.names_any(each.get("args") or [], migrations.METRIC_FLAGS) for each in containers):
            says = "uses deprecated metric flags"
            raise Refused(_unmovable(name, says, "core-metrics-extractor", "deprecated flags"))
        return {}
    found: dict[str, str] = {}
    for each in containers:
        if arguments := each.get("args"):
            each["args"], taken = flags.take(arguments, migrations.METRIC_FLAGS)
            found = taken or found
    return found


def _take_source_flags(pod: Object, name: str, is_writable: bool) -> Object:
    """Returns where and how metrics are read. The port goes without replacement: it is the pool's target port."""
    found: dict[str, str] = {}
    for each in pod.get("containers") or []:
        for place in ("command", "args"):
            rest, taken = flags.take(each.get(place) or [], (_SCHEME, _PATH, _PORT, _INSECURE))
            if taken:
                each[place] = rest
                found |= taken
    found.pop(_PORT, None)
    if found and not is_writable:
        says = f"sets deprecated {', '.join(f'--{flag}' for flag in sorted(found))}"
        raise Refused(_unmovable(name, says, f"the {_DATA_SOURCE}", "flags"))
    return _source_parameters(found)


def _source_parameters(found: dict[str, str]) -> Object:
    given: dict[str, Any] = {"scheme": found.get(_SCHEME), "path": found.get(_PATH)}
    if _INSECURE in found:
        given["insecureSkipVerify"] = _boolean(found[_INSECURE])
    return {key: value for key, value in given.items() if value not in (None, "")}


def _boolean(value: str) -> bool:
    if value and value not in _TRUE | _FALSE:
        problem = f'strconv.ParseBool: parsing "{value}": invalid syntax'
        raise Refused(f'invalid value "{value}" for --{_INSECURE}: {problem}')
    return value not in _FALSE


def _unmovable(name: str, says: str, plugin: str, remedy: str) -> str:
    return (
        f"scheduler deployment {name} {says} but has no inline --config-text; automatic migration to {plugin} plugin is"
        f" not possible — convert to --config-text or remove the {remedy} manually"
    )
