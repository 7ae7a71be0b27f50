"""A rule as routes of Envoy's: usually one, two where a prefix is cut off a path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from isvc.local.gateway.envoy.types import ABOUT, OWN_CLUSTER, PROCESSOR, Json, typed
from isvc.local.gateway.routes.rules import (
    Backend,
    Comparison,
    Condition,
    Filters,
    Match,
    Mirror,
    PathKind,
    PathRewrite,
    Redirect,
    Refusal,
    Rule,
)

_REDIRECTS: Final = {
    301: "MOVED_PERMANENTLY",
    302: "FOUND",
    303: "SEE_OTHER",
    307: "TEMPORARY_REDIRECT",
    308: "PERMANENT_REDIRECT",
}
_LONGEST: Final = 1000  # of the reasons that Envoy is given
_USUAL_PORTS: Final = {"http": 80, "https": 443}
_ATTEMPTS: Final = 4  # after connections that were refused, where a rule says nothing of retries
_NOT_SEEN: Final = "connect-failure,refused-stream,reset-before-request"
_LONGEST_PAUSE: Final = 60.0
_MILLION: Final = 1_000_000
_OTHER_ENDPOINTS: Final[Json] = {
    "retry_host_predicate": [
        {
            "name": "envoy.retry_host_predicates.previous_hosts",
            "typed_config": typed("envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"),
        }
    ],
    "host_selection_retry_max_attempts": 10,
}


class Way(NamedTuple):
    """How a backend is reached: by which cluster, and who is asked about a request before.

    Envoy asks nobody while it has all that it needs to know.
    """

    cluster: str
    processor: str = ""  # OWN_CLUSTER, or the cluster of an endpoint picker
    picks: bool = False  # whether the whole request is shown, to pick an endpoint by


Reach = Callable[[Backend], Way]


def routes(rule: Rule, reach: Reach) -> Iterable[Json]:
    """Yields the routes of a rule, in the order in which they are to be tried."""
    named = {"name": rule.origin}
    if rule.refusal is not None:
        yield {**named, "match": _match(rule.match), **refuse(rule.refusal)}
        return
    for match, rewrite in _rewrites(rule.match, (rule.redirect or rule.filters).path):
        if rule.redirect is not None:
            yield {**named, "match": match, "redirect": _redirect(rule.redirect, rewrite)}
        else:
            yield {**named, "match": match, **_forward(rule, rewrite, reach)}


def refuse(refusal: Refusal) -> Json:
    """Returns what a route does in place of forwarding; the reason gets its form where Envoy's own ones do."""
    return {"direct_response": {"status": refusal.status, "body": {"inline_string": refusal.reason[:_LONGEST]}}}


def ask(about: str) -> Json:
    """Returns the part of a route by which the processor is asked before anything else is done."""
    return _processing(Way(about, OWN_CLUSTER))


def _processing(way: Way) -> Json:
    """Returns the part of a route by which somebody is asked about its requests."""
    if not way.processor:
        return {}
    overrides: Json = {"grpc_initial_metadata": [{"key": ABOUT, "value": way.cluster}]}
    if way.picks:
        overrides["processing_mode"] = {
            "request_header_mode": "SEND",
            "request_body_mode": "FULL_DUPLEX_STREAMED",
            "request_trailer_mode": "SEND",
            "response_header_mode": "SEND",
            "response_trailer_mode": "SKIP",
        }
    if way.processor != OWN_CLUSTER:
        overrides["grpc_service"] = {"envoy_grpc": {"cluster_name": way.processor}}
    part = typed("envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute", overrides=overrides)
    return {"typed_per_filter_config": {PROCESSOR: part}}


def _match(match: Match) -> Json:
    conditions = [_header(each) for each in match.headers]
    if match.method:
        conditions.append({"name": ":method", "string_match": {"exact": match.method}})
    found: Json = {"headers": conditions} if conditions else {}
    if match.query:
        found["query_parameters"] = [_parameter(each) for each in match.query]
    return {**_path(match), **found}


def _path(match: Match) -> Json:
    match match.kind:
        case PathKind.EXACT:
            return {"path": match.path}
        case PathKind.REGEX:
            return {"safe_regex": {"regex": match.path}}
        case PathKind.PREFIX if match.stem:
            return {"path_separated_prefix": match.stem}
        case _:
            return {"prefix": match.path or "/"}


def _header(condition: Condition) -> Json:
    """A header that must not have a value may also be missing."""
    found: Json = {"name": condition.name, **_comparison(condition)}
    if condition.must_not:
        found["invert_match"] = True
        if condition.comparison is not Comparison.PRESENT:
            found["treat_missing_header_as_empty"] = True
    return found


def _parameter(condition: Condition) -> Json:
    return {"name": condition.name, **_comparison(condition)}


def _comparison(condition: Condition) -> Json:
    match condition.comparison:
        case Comparison.PRESENT:
            return {"present_match": True}
        case Comparison.REGEX:
            return {"string_match": {"safe_regex": {"regex": condition.value}}}
        case Comparison.PREFIX if not condition.value:
            return {"present_match": True}
        case comparison:
            return {"string_match": {comparison.value: condition.value}}


def _rewrites(match: Match, rewrite: PathRewrite) -> list[tuple[Json, Json]]:
    """Returns matches, each with what rewrites the path it matched."""
    whole = _match(match)
    if rewrite.found is not None:
        pattern, new = rewrite.found
        return [(whole, _replace(pattern, new))]
    new_prefix, new_path = rewrite.prefix, rewrite.full
    if new_prefix is not None and match.kind in (PathKind.EXACT, PathKind.REGEX):
        new_prefix, new_path = None, new_prefix  # the whole path is what matched
    if new_path is not None:
        return [(whole, _replace("^/.*$", new_path.replace("\\", "\\\\")))]
    if new_prefix is None:
        return [(whole, {})]
    if match.kind is PathKind.LITERAL_PREFIX:
        return [(whole, {"prefix_rewrite": new_prefix or "/"})]
    new_stem = new_prefix.rstrip("/")
    if not match.stem:
        return [(whole, {"prefix_rewrite": f"{new_stem}/"})]
    if new_stem:
        return [(whole, {"prefix_rewrite": new_stem})]
    del whole["path_separated_prefix"]
    below = {"prefix": f"{match.stem}/", **whole}, {"prefix_rewrite": "/"}
    return [({"path": match.stem, **whole}, {"prefix_rewrite": "/"}), below]


def _replace(pattern: str, new: str) -> Json:
    return {"regex_rewrite": {"pattern": {"regex": pattern}, "substitution": new}}


def _redirect(redirect: Redirect, rewrite: Json) -> Json:
    found: Json = {"response_code": _REDIRECTS.get(redirect.status, "FOUND"), **rewrite}
    if redirect.scheme:
        found["scheme_redirect"] = redirect.scheme
    if redirect.host:
        found["host_redirect"] = redirect.host
    if redirect.port and redirect.port != _USUAL_PORTS[redirect.scheme or "http"]:
        found["port_redirect"] = redirect.port
    return found


def _forward(rule: Rule, rewrite: Json, reach: Reach) -> Json:
    action: Json = {**rewrite, "timeout": _seconds(rule.timeout or 0), "retry_policy": _retries(rule)}
    if rule.mirrors:
        action["request_mirror_policies"] = [_mirror(each, reach) for each in rule.mirrors]
    found: Json = {"route": action, **_changes(rule.filters)}
    if host := _host(rule.filters):
        action["host_rewrite_literal"] = host
    backends = [backend for backend in rule.backends if backend.weight]
    if len(backends) == 1 and backends[0].filters == Filters():
        way = reach(backends[0])
        action["cluster"] = way.cluster
        found |= _processing(way)
    else:
        action["weighted_clusters"] = {"clusters": [_weighted(backend, reach) for backend in backends]}
    if limits := _limits(rule):
        found["metadata"] = {"filter_metadata": {"isvc": limits}}
    return found


def _weighted(backend: Backend, reach: Reach) -> Json:
    way = reach(backend)
    found: Json = {"name": way.cluster, "weight": backend.weight, **_changes(backend.filters), **_processing(way)}
    if host := _host(backend.filters):
        found["host_rewrite_literal"] = host
    return found


def _retries(rule: Rule) -> Json:
    retry = rule.retry
    policy: Json = {"retry_on": _NOT_SEEN, "num_retries": _ATTEMPTS, **_OTHER_ENDPOINTS}
    if retry.attempts:
        policy |= {
            "retry_on": f"{_NOT_SEEN},reset,retriable-status-codes",
            "num_retries": retry.attempts,
            "retriable_status_codes": sorted(retry.codes),
            "retry_back_off": {
                "base_interval": _seconds(max(retry.backoff, 0.001)),
                "max_interval": _seconds(max(retry.backoff, _LONGEST_PAUSE)),
            },
        }
    if rule.attempt_timeout is not None:
        policy["per_try_timeout"] = _seconds(rule.attempt_timeout)
    return policy


def _limits(rule: Rule) -> Json:
    """Returns what is said when a limit of time is reached."""
    found = {}
    if rule.timeout is not None:
        found["limit"] = f"no answer within {rule.timeout:g} s, the limit of {rule.origin}"
    if rule.attempt_timeout is not None:
        found["attempt"] = f"no answer within {rule.attempt_timeout:g} s, the limit of {rule.origin} for an attempt"
    return found


def _mirror(mirror: Mirror, reach: Reach) -> Json:
    numerator = min(_MILLION, max(0, round(mirror.share * _MILLION)))
    return {
        "cluster": reach(mirror.backend).cluster,
        "runtime_fraction": {"default_value": {"numerator": numerator, "denominator": "MILLION"}},
        "disable_shadow_host_suffix_append": True,
    }


def _changes(filters: Filters) -> Json:
    found: Json = {}
    for side, change in (("request", filters.request), ("response", filters.response)):
        added = [*(_set(*pair) for pair in change.set), *(_add(*pair) for pair in change.add)]
        if added := _allowed(added):
            found[f"{side}_headers_to_add"] = added
        if removed := [name for name in change.remove if name.lower() != "host"]:
            found[f"{side}_headers_to_remove"] = removed
    return found


def _allowed(headers: Sequence[Json]) -> list[Json]:
    """Returns headers without the host, which a route rewrites in another way."""
    return [each for each in headers if each["header"]["key"].lower() != "host"]


def _host(filters: Filters) -> str:
    """Returns the host that the backend is to see, "" for the one that was asked for."""
    hosts = [value for name, value in filters.request.set if name.lower() == "host"]
    return filters.rewrite_host or (hosts[-1] if hosts else "")


def _set(name: str, value: str) -> Json:
    return _header_value(name, value, "OVERWRITE_IF_EXISTS_OR_ADD")


def _add(name: str, value: str) -> Json:
    return _header_value(name, value, "APPEND_IF_EXISTS_OR_ADD")


def _header_value(name: str, value: str, action: str) -> Json:
    """Returns a header as it is written: a percent sign would begin one of Envoy's variables."""
    return {"header": {"key": name, "value": value.replace("%", "%%")}, "append_action": action}


def _seconds(number: float) -> str:
    return f"{number:.9f}".rstrip("0").rstrip(".") + "s"
