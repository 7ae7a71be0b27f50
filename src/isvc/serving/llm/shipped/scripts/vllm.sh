# Which flags this vLLM has.
version=$(vllm --version 2>/dev/null | tail -1 | awk '{print $NF}')
at_least() { [[ "$version" =~ ^[0-9]+\.[0-9]+ ]] && [ "$(printf '%s\n' "$1" "$version" | sort -V | head -1)" = "$1" ]; }
given() { [[ "${VLLM_ADDITIONAL_ARGS:-} $*" =~ --kv[-_]transfer[-_]config ]]; }
ACCESS_LOG_ARGS="--disable-uvicorn-access-log"
at_least 0.16.0 && ACCESS_LOG_ARGS="--disable-access-log-for-endpoints /health,/metrics,/ping"
SHUTDOWN_TIMEOUT_ARGS=""
at_least 0.18.0 && SHUTDOWN_TIMEOUT_ARGS="--shutdown-timeout @SHUTDOWN@"
KV_TRANSFER_ARGS=""
at_least 0.22.0 && ! given "$@" && KV_TRANSFER_ARGS="@KV_TRANSFER@"
