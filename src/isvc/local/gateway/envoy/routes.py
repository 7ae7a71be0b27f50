"""A rule as routes of Envoy's: usually one, two where a prefix is cut off a path."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from isvc.kube.durations import limit
from isvc.kube.objects import Object
from isvc.local.gateway.envoy.types import ABOUT, OWN_CLUSTER, PROCESSOR, Json, typed
from isvc.local.gateway.routes.rules import Backend, Mirror, Path, Refusal, Rule, path_modifier, rewritten_host

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
_PATIENT_ATTEMPTS: Final = 2400  # with half of the longest pause between them, on average
_PATIENT_PAUSE: Final[Json] = {"base_interval": "0.025s", "max_interval": "0.5s"}
_LONGEST_PAUSE: Final = 60.0
_MILLION: Final = 1_000_000
_PAUSE: Final = 0.025  # seconds before the first retry; twice as many before each further one
_UNAVAILABLE: Final = (502, 503, 504)  # after which a retry that names no codes is made
_SIDES: Final = ("request", "response")
_ACTIONS: Final = {"set": "OVERWRITE_IF_EXISTS_OR_ADD", "add": "APPEND_IF_EXISTS_OR_ADD"}
_WHAT_IS_SAID: Final = {  # when a limit of time is reached
    "request": "no answer within {:g} s, the limit of {}",
    "backendRequest": "no answer within {:g} s, the limit of {} for an attempt",
}
_HEADERS_SHOWN: Final = {
    "request_header_mode": "SEND",
    "response_header_mode": "SKIP",
    "response_trailer_mode": "SEND",  # so that the stream lasts as long as the request
}
_ALL_SHOWN: Final = {
    "request_header_mode": "SEND",
    "request_body_mode": "FULL_DUPLEX_STREAMED",
    "request_trailer_mode": "SEND",
    "response_header_mode": "SEND",
    "response_trailer_mode": "SKIP",
}
_OTHER_ENDPOINTS: Final[Json] = {
    "retry_host_predicate": [
        {
            "name": "envoy.retry_host_predicates.previous_hosts",
            "typed_config": typed("envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"),
        }
    ],
    "host_selection_retry_max_attempts": 10,
}


class Destination(NamedTuple):
    """How a backend is reached: by which cluster, and who is asked about a request before.

    Envoy asks nobody while it has all that it needs to know.
    """

    cluster: str
    processor: str = ""  # OWN_CLUSTER, or the cluster of an endpoint picker
    picks: bool = False  # whether the whole request is shown, to pick an endpoint by
    fails_open: bool = False  # whether a request goes on where nobody answers
    comes_back: bool = False  # whether there will be a pod again where there is none


DestinationOf = Callable[[Backend], Destination]


def routes(rule: Rule, destination_of: DestinationOf) -> Iterable[Json]:
    """Yields the routes of a rule, in the order in which they are to be tried."""
    named = {"name": rule.origin}
    if rule.refusal is not None:
        yield {**named, "match": _match(rule.match), **refuse(rule.refusal)}
        return
    redirects = [each["requestRedirect"] for each in rule.filters if each["type"] == "RequestRedirect"]
    for match, rewrite in _rewrites(rule.match, path_modifier(rule.filters)):
        if redirects:
            yield {**named, "match": match, "redirect": _redirect(redirects[-1], rewrite)}
        else:
            yield {**named, "match": match, **_forward(rule, rewrite, destination_of)}


def refuse(refusal: Refusal) -> Json:
    """Returns what a route does in place of forwarding; the reason gets its form where Envoy's own ones do."""
    return {"direct_response": {"status": refusal.status, "body": {"inline_string": refusal.reason[:_LONGEST]}}}


def ask(about: str) -> Json:
    """Returns the part of a route by which the processor is asked before anything else is done."""
    return _processing(Destination(about, OWN_CLUSTER))


def _processing(destination: Destination) -> Json:
    """Returns the part of a route by which somebody is asked about its requests."""
    if not destination.processor:
        return {}
    mode: Json = _ALL_SHOWN if destination.picks else _HEADERS_SHOWN
    overrides: Json = {
        "grpc_initial_metadata": [{"key": ABOUT, "value": _quoted(destination.cluster)}],
        "processing_mode": mode,
    }
    if destination.processor != OWN_CLUSTER:
        overrides["grpc_service"] = {"envoy_grpc": {"cluster_name": destination.processor}}
        overrides["failure_mode_allow"] = destination.fails_open
        overrides["processing_mode"] = {
            **mode,
            "response_body_mode": "FULL_DUPLEX_STREAMED",
            "response_trailer_mode": "SEND",
        }
    part = typed("envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute", overrides=overrides)
    return {"typed_per_filter_config": {PROCESSOR: part}}


def _quoted(name: str) -> str:
    """Returns a name, of which users may have made anything, in ASCII, as gRPC wants metadata; Envoy doubles a %."""
    return quote(name).replace("%", "%%")


# As KServe writes it. To compile an expression takes Envoy longer than all else about a route.
_ANY_PATH: Final = frozenset({"^/.*$", "^/.*", "/.*$", "/.*"})


def _match(match: Object) -> Json:
    conditions = [_header(each) for each in match.get("headers") or ()]
    if method := match.get("method"):
        conditions.append({"name": ":method", "string_match": {"exact": method}})
    found: Json = {"headers": conditions} if conditions else {}
    if query := match.get("queryParams"):
        found["query_parameters"] = [{"name": each["name"], **_comparison(each)} for each in query]
    return {**_path(Path.of(match)), **found}


def _path(path: Path) -> Json:
    match path.kind:
        case "Exact":
            return {"path": path.value}
        case "RegularExpression" if path.value in _ANY_PATH:
            return {"prefix": "/"}
        case "RegularExpression":
            return {"safe_regex": {"regex": path.value}}
        case "PathPrefix" if path.stem:
            return {"path_separated_prefix": path.stem}
        case _:
            return {"prefix": path.value}


def _header(condition: Object) -> Json:
    """Returns the match of a header; one that must not have a value may also be missing."""
    found: Json = {"name": condition["name"], **_comparison(condition)}
    if condition.get("not"):
        found["invert_match"] = True
        if condition["type"] != "Present":
            found["treat_missing_header_as_empty"] = True
    return found


def _comparison(condition: Object) -> Json:
    value = condition.get("value")
    match condition.get("type"):
        case "RegularExpression":
            return {"string_match": {"safe_regex": {"regex": value}}}
        case "Prefix" if value:
            return {"string_match": {"prefix": value}}
        case "Suffix" | "Contains" as kind:
            return {"string_match": {kind.lower(): value}}
        case "Prefix" | "Present":
            return {"present_match": True}
        case _:
            return {"string_match": {"exact": value}}


def _rewrites(match: Object, modifier: Object) -> list[tuple[Json, Json]]:
    """Returns matches, each with what rewrites the path it matched."""
    whole, path = _match(match), Path.of(match)
    if pattern := modifier.get("replaceRegexMatch"):
        return [(whole, _replace(pattern["match"], pattern["rewrite"]))]
    new_prefix, new_path = modifier.get("replacePrefixMatch"), modifier.get("replaceFullPath")
    if new_prefix is not None and path.kind in ("Exact", "RegularExpression"):
        new_prefix, new_path = None, new_prefix  # the whole path is what matched
    if new_path is not None:
        return [(whole, _replace("^/.*$", new_path.replace("\\", "\\\\")))]
    if new_prefix is None:
        return [(whole, {})]
    if path.kind == "LiteralPrefix":
        return [(whole, {"prefix_rewrite": new_prefix or "/"})]
    new_stem = new_prefix.rstrip("/")
    if not path.stem:
        return [(whole, {"prefix_rewrite": f"{new_stem}/"})]
    if new_stem:
        return [(whole, {"prefix_rewrite": new_stem})]
    del whole["path_separated_prefix"]
    below = {"prefix": f"{path.stem}/", **whole}, {"prefix_rewrite": "/"}
    return [({"path": path.stem, **whole}, {"prefix_rewrite": "/"}), below]


def _replace(pattern: str, new: str) -> Json:
    return {"regex_rewrite": {"pattern": {"regex": pattern}, "substitution": new}}


def _redirect(redirect: Object, rewrite: Json) -> Json:
    found: Json = {"response_code": _REDIRECTS.get(redirect.get("statusCode") or 302, "FOUND"), **rewrite}
    if scheme := redirect.get("scheme"):
        found["scheme_redirect"] = scheme
    if host := redirect.get("hostname"):
        found["host_redirect"] = host
    if (port := redirect.get("port")) and port != _USUAL_PORTS[scheme or "http"]:
        found["port_redirect"] = port
    return found


def _forward(rule: Rule, rewrite: Json, destination_of: DestinationOf) -> Json:
    timeouts = rule.spec.get("timeouts") or {}
    limits = {key: seconds for key, text in timeouts.items() if (seconds := limit(text or ""))}
    backends = [backend for backend in rule.backends if backend.weight]
    patient = any(destination_of(backend).comes_back for backend in backends)
    retries = _retries(rule.spec.get("retry"), limits.get("backendRequest"), patient=patient)
    action: Json = {**rewrite, "timeout": _seconds(limits.get("request", 0)), "retry_policy": retries}
    if rule.mirrors:
        action["request_mirror_policies"] = [_mirror(each, destination_of) for each in rule.mirrors]
    found: Json = {"route": action, **_changes(rule.filters)}
    if host := rewritten_host(rule.filters):
        action["host_rewrite_literal"] = host
    if len(backends) == 1 and not backends[0].filters:
        destination = destination_of(backends[0])
        action["cluster"] = destination.cluster
        found |= _processing(destination)
    else:
        action["weighted_clusters"] = {"clusters": [_weighted(backend, destination_of) for backend in backends]}
    if limits:
        said = {key: _WHAT_IS_SAID[key].format(seconds, rule.origin) for key, seconds in limits.items()}
        found["metadata"] = {"filter_metadata": {"isvc": said}}
    return found


def _weighted(backend: Backend, destination_of: DestinationOf) -> Json:
    destination = destination_of(backend)
    found: Json = {"name": destination.cluster, "weight": backend.weight, **_changes(backend.filters)}
    found |= _processing(destination)
    if host := rewritten_host(backend.filters):
        found["host_rewrite_literal"] = host
    return found


def _retries(retry: Object | None, attempt_limit: float | None, *, patient: bool) -> Json:
    """Returns when a request is sent again; a `patient` one until it is connected, for about ten minutes."""
    policy: Json = {"retry_on": _NOT_SEEN, "num_retries": _ATTEMPTS, **_OTHER_ENDPOINTS}
    if patient:
        policy |= {"num_retries": _PATIENT_ATTEMPTS, "retry_back_off": _PATIENT_PAUSE}
    if retry is not None and (attempts := retry.get("attempts", 1)):
        backoff = limit(retry.get("backoff") or "") or _PAUSE
        policy |= {
            "retry_on": f"{_NOT_SEEN},reset,retriable-status-codes",
            "num_retries": attempts,
            "retriable_status_codes": retry.get("codes", _UNAVAILABLE),
            "retry_back_off": {
                "base_interval": _seconds(max(backoff, 0.001)),
                "max_interval": _seconds(max(backoff, _LONGEST_PAUSE)),
            },
        }
    if attempt_limit is not None:
        policy["per_try_timeout"] = _seconds(attempt_limit)
    return policy


def _mirror(mirror: Mirror, destination_of: DestinationOf) -> Json:
    numerator = min(_MILLION, max(0, round(mirror.share * _MILLION)))
    return {
        "cluster": destination_of(mirror.backend).cluster,
        "runtime_fraction": {"default_value": {"numerator": numerator, "denominator": "MILLION"}},
        "disable_shadow_host_suffix_append": True,
    }


def _changes(filters: Iterable[Object]) -> Json:
    """Returns what becomes of headers but for the host, which a route rewrites in another destination."""
    found: dict[str, list[Any]] = {}
    for side, change in ((side, each.get(f"{side}HeaderModifier") or {}) for each in filters for side in _SIDES):
        for key, action in _ACTIONS.items():
            pairs = [each for each in change.get(key) or () if each["name"].lower() != "host"]
            found.setdefault(f"{side}_headers_to_add", []).extend(_header_value(action, each) for each in pairs)
        removed = [name for name in change.get("remove") or () if name.lower() != "host"]
        found.setdefault(f"{side}_headers_to_remove", []).extend(removed)
    return {key: values for key, values in found.items() if values}


def _header_value(action: str, header: Object) -> Json:
    """Returns a header as it is written: a percent sign would begin one of Envoy's variables."""
    return {"header": {"key": header["name"], "value": header["value"].replace("%", "%%")}, "append_action": action}


def _seconds(number: float) -> str:
    return f"{number:.9f}".rstrip("0").rstrip(".") + "s"
