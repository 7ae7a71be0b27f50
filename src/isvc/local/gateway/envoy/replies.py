"""Envoy's own answers, in the words and the form of the gateway's: `{"error": …}`, with a header that tells them apart.

To clients of gRPC Envoy says the same as a status of gRPC.
"""

from __future__ import annotations

from typing import Final

from isvc.local.gateway.envoy.types import REFUSED_HEADER, Json, typed

_FOREIGN: Final = "a web page of another site asks; `isvc up --allow-origin` lets its origin in"
_NO_POD: Final = "the gateway is the proxy of pods alone"
_NO_PATH: Final = "%REQ(:METHOD)% needs a path; the gateway opens no tunnels, as https:// would need them"
_GONE: Final = "the route of %REQ(:AUTHORITY)% was deleted while the request waited"
_OFF_LIMITS: Final = "%REQ(:AUTHORITY)% is this machine, or its metadata, which pods in a sandbox do not reach"
_NO_PICKER: Final = "the endpoint picker of %UPSTREAM_CLUSTER% does not answer"
_CHALLENGE: Final[Json] = {"header": {"key": "proxy-authenticate", "value": 'Basic realm="pods"'}}
_REFUSED: Final[Json] = {
    "header": {"key": REFUSED_HEADER, "value": "refused"},
    "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
}


def local_replies() -> list[Json]:
    """Returns how answers are worded that come from no service; the first that fits counts."""
    return [
        _say(_because("foreign"), _FOREIGN),
        {**_say(_because("no-pod"), _NO_POD), "status_code": 407, "headers_to_add": [_REFUSED, _CHALLENGE]},
        _say(_because("off-limits"), _OFF_LIMITS),
        _say(_expression('response.code_details.startsWith("ext_proc_error")'), _NO_PICKER),
        _say(_details("upstream_per_try_timeout"), "%METADATA(ROUTE:isvc:backendRequest)%"),
        _say(_flags("UT"), "%METADATA(ROUTE:isvc:request)%"),
        _say(_flags("UF"), "no endpoint of Service %UPSTREAM_CLUSTER% accepts connections: %LOCAL_REPLY_BODY%"),
        {
            **_say(_flags("UC", "UPE", "UR"), "the endpoint %UPSTREAM_HOST% ended the connection: %LOCAL_REPLY_BODY%"),
            "status_code": 502,
        },
        _say(_flags("UH"), "Service %UPSTREAM_CLUSTER% has no endpoint that is ready"),
        {
            **_say(_expression('response.code_details == "route_not_found" && request.path.startsWith("/")'), _GONE),
            "status_code": 503,
        },
        {**_say(_details("route_not_found", "absolute_path_rejected"), _NO_PATH), "status_code": 400},
        _say(_details("missing_host_header"), "a request has one Host header, not 0"),
        _say(_from_code(400), "%LOCAL_REPLY_BODY%"),
    ]


def _say(when: Json, words: str) -> Json:
    return {"filter": when, "body_format_override": {"json_format": {"error": words}}, "headers_to_add": [_REFUSED]}


def _flags(*flags: str) -> Json:
    return {"response_flag_filter": {"flags": list(flags)}}


def _because(policies: str) -> Json:
    return _expression(f'response.code_details.startsWith("rbac_access_denied_matched_policy[{policies}")')


def _details(*texts: str) -> Json:
    return _expression(" || ".join(f'response.code_details == "{text}"' for text in texts))


def _expression(text: str) -> Json:
    config = typed("envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter", expression=text)
    return {"extension_filter": {"name": "envoy.access_loggers.extension_filters.cel", "typed_config": config}}


def _from_code(code: int) -> Json:
    value = {"default_value": code, "runtime_key": "isvc.unused"}
    return {"status_code_filter": {"comparison": {"op": "GE", "value": value}}}
