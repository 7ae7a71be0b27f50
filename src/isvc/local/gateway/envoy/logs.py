"""What is counted and logged of each request. Queries are left out, in paths and in referrers: they may hold tokens."""

from __future__ import annotations

from typing import Final, NamedTuple

from isvc.local.gateway.envoy.types import Json, typed


class Metadata(NamedTuple):
    namespace: str
    key: str


STAT_PREFIX: Final = "isvc_gateway"
BUCKETS: Final = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000)  # ms
HELD: Final = Metadata("isvc", "held")
"""Set on requests that the processor was asked about, and which others count."""

ROUTED_AGAIN: Final = Metadata("isvc", "again")
"""Set on requests that come back, and are counted and logged then."""

_SERVICE: Final[Json] = {"name": "service", "value_format": "%UPSTREAM_CLUSTER%"}
_CODE: Final[Json] = {"name": "code", "value_format": "%RESPONSE_CODE%"}
_LUA_NAMESPACE: Final = "isvc.log"
_PATH: Final = "isvc.path"  # before a route rewrites it


def stat_loggers() -> list[Json]:
    """Returns the loggers that count requests, bytes and time by service; of those that were not held, apart."""
    every = _stats(
        counters=[
            {"stat": {"name": "requests", "tags": [_SERVICE, _CODE]}, "value_fixed": 1},
            {"stat": {"name": "response_bytes", "tags": [_SERVICE]}, "value_format": "%BYTES_SENT%"},
        ],
        histograms=[
            {
                "stat": {"name": "request_duration", "tags": [_SERVICE]},
                "unit": "Milliseconds",
                "value_format": "%DURATION%",
            }
        ],
    )
    microseconds = "%COMMON_DURATION(DS_RX_BEG:DS_TX_END:us)%"
    direct = _stats(
        counters=[
            {"stat": {"name": "direct", "tags": [_SERVICE]}, "value_fixed": 1},
            {"stat": {"name": "direct_microseconds", "tags": [_SERVICE]}, "value_format": microseconds},
        ]
    )
    return [{**every, "filter": _without(ROUTED_AGAIN)}, {**direct, "filter": _without(HELD)}]


def _without(metadata: Metadata) -> Json:
    """Returns what leaves out requests on which this is set."""
    matcher = {"filter": metadata.namespace, "path": [{"key": metadata.key}], "value": {"bool_match": False}}
    return {"metadata_filter": {"matcher": matcher, "match_if_key_not_found": True}}


def _stats(**stats: list[Json]) -> Json:
    scope = {"prefix": STAT_PREFIX}
    config = typed("envoy.extensions.access_loggers.stats.v3.Config", stats_scope=scope, **stats)
    return {"name": "isvc.stats", "typed_config": config}


def file_logger(path: str, *, as_json: bool) -> Json:
    """Returns the logger that writes a line for each request."""
    return {
        "name": "isvc.log",
        "filter": _without(ROUTED_AGAIN),
        "typed_config": typed(
            "envoy.extensions.access_loggers.file.v3.FileAccessLog",
            path=path,
            log_format={"json_format": _JSON} if as_json else {"text_format_source": {"inline_string": _COMBINED}},
        ),
    }


_JSON: Final[Json] = {
    "time": "%START_TIME(%Y-%m-%dT%H:%M:%SZ)%",
    "client": "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
    "method": "%REQ(:METHOD)%",
    "host": "%REQ(:AUTHORITY)%",
    "path": f"%FILTER_STATE({_PATH}:PLAIN)%",
    "protocol": "%PROTOCOL%",
    "status": "%RESPONSE_CODE%",
    "bytes": "%BYTES_SENT%",
    "milliseconds": "%DURATION%",
    "service": "%UPSTREAM_CLUSTER%",
    "user_agent": "%REQ(USER-AGENT)%",
}
_COMBINED: Final = (
    "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT% - - [%START_TIME(%d/%b/%Y:%H:%M:%S +0000)%] "
    f'"%REQ(:METHOD)% %DYNAMIC_METADATA({_LUA_NAMESPACE}:path)% %PROTOCOL%" %RESPONSE_CODE% %BYTES_SENT% '
    f'"%DYNAMIC_METADATA({_LUA_NAMESPACE}:referer)%" "%DYNAMIC_METADATA({_LUA_NAMESPACE}:user-agent)%" '
    "%DURATION% %UPSTREAM_CLUSTER%\n"
)


def log_filter(*, as_json: bool) -> Json:
    """Returns the filter by which a path is logged as it was asked for."""
    if not as_json:
        return _escaping()
    value = {
        "object_key": _PATH,
        "factory_key": "envoy.string",
        "format_string": {"text_format_source": {"inline_string": "%PATH(NQ:PATH)%"}},
    }
    config = typed("envoy.extensions.filters.http.set_filter_state.v3.Config", on_request_headers=[value])
    return {"name": "isvc.log", "typed_config": config}


def _escaping() -> Json:
    """Sees to it, too, that no quotation mark of a client's ends up as one of ours."""
    code = f"""
        function envoy_on_request(handle)
          local headers, metadata = handle:headers(), handle:streamInfo():dynamicMetadata()
          for _, name in ipairs({{":path", "referer", "user-agent"}}) do
            local value = headers:get(name) or "-"
            if name ~= "user-agent" then value = value:gsub("%?.*", "") end
            metadata:set("{_LUA_NAMESPACE}", name:gsub(":", ""), value:gsub('[\\\\"]', "\\\\%0"))
          end
        end
    """
    config = typed("envoy.extensions.filters.http.lua.v3.Lua", default_source_code={"inline_string": code})
    return {"name": "isvc.log", "typed_config": config}
