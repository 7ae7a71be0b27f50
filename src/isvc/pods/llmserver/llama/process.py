"""llama.cpp in a process of its own: started by `engine.py`, reached over HTTP on loopback.

A crash of native code then costs the requests under way and a reload, and never the server. Settings come as a line
of JSON on standard input, which keeps the key that protects the loopback port out of the process list; the address
goes back as a line of JSON on standard output. When standard input ends, so does this process: it outlives its parent
in no case.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any


def main() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):  # the parent decides when a stop is due
        signal.signal(number, signal.SIG_IGN)
    settings = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever llama.cpp prints belongs into the log
    server = start(settings)
    for number in (signal.SIGTERM, signal.SIGINT):  # llama.cpp installs handlers of its own
        signal.signal(number, signal.SIG_IGN)
    print(json.dumps({"address": server.listening_address}), file=answers, flush=True)
    sys.stdin.read()
    os._exit(0)


def start(settings: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["model"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [settings["key"]]
    params.cors_origins = ""
    params.ui = False
    params.verbosity = 1
    params.endpoint_slots = True
    # Every sequence has a cache of its own: a long one never makes another fail.
    params.n_parallel = settings["sequences"]
    params.n_ctx = settings["sequences"] * settings["context"]
    params.cache_ram_mib = settings["prompt_cache_mib"]
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    # One context serves both: text and embeddings. An input to embed has to fit into one batch. With adapters there
    # are no embeddings: llama.cpp makes them with the adapter of whatever request came before.
    params.embedding = not settings["loras"]
    params.n_batch = params.n_ubatch = settings["batch"]
    if not settings["embeds_only"]:  # as vLLM does; a mean would miss what a cached prefix contributes
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_LAST
    if settings["chat_template"]:
        params.chat_template = settings["chat_template"]
    params.lora_init_without_apply = True
    params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(path, 0.0) for path in settings["loras"]]
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
