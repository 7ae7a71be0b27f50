"""The program: flags, the model loaded before the port opens, and an orderly end.

A port that answers means a model that is loaded. On SIGTERM no new connection is taken, running requests are answered
within --shutdown-timeout, and then the process ends.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isvc.pods import process
from isvc.pods.llmserver import tls
from isvc.pods.llmserver.errors import ServerError
from isvc.pods.llmserver.flags import VLLM_VERSION, Options, parse
from isvc.pods.llmserver.llama.gguf import read_header
from isvc.pods.llmserver.llama.model_files import find_adapter, find_model

if TYPE_CHECKING:
    from isvc.pods.llmserver.llama.engine import Engine

log = logging.getLogger("isvc.pods.llmserver")

_DEFAULT_CONTEXT = 4096
_BATCH = 512
_PROMPT_CACHE_MIB = 256
_GPUS = ("/dev/nvidia0", "/dev/kfd")


def main(argv: Sequence[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    if list(argv) in (["--version"], ["-v"]):
        print(VLLM_VERSION)  # noqa: T201
        return 0
    process.set_up_logs()
    if _vllm_can_run():
        log.info("vLLM is installed and there is a GPU: running vLLM")
        command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *_vllm_flags(argv)]
        os.execv(sys.executable, command)  # noqa: S606
    try:
        options, unknown = parse(argv)
        for flag in unknown:
            log.warning("%s has no effect on llama.cpp", flag)
        return asyncio.run(_serve(options))
    except (ServerError, OSError) as error:
        log.error("%s", error)
        process.write_termination_message(str(error))
        return 1


def _vllm_can_run() -> bool:
    return importlib.util.find_spec("vllm") is not None and any(Path(device).exists() for device in _GPUS)


def _vllm_flags(argv: Sequence[str]) -> list[str]:
    """Turns the words of `vllm serve`, which takes the model as the first, into the flags that the API server takes."""
    words = list(argv)
    if words[:1] == ["serve"]:
        del words[0]
    return words if not words or words[0].startswith("-") else ["--model", *words]


async def _serve(options: Options) -> int:
    """Serves until SIGTERM or SIGINT; 1 when llama.cpp dies and cannot be started again."""
    from aiohttp import web

    from isvc.pods.llmserver.app import App
    from isvc.pods.llmserver.catalogue import Catalogue

    stop = process.stop_on_signals()
    certificate = tls.load(options)
    listener = process.bind(options.host, options.port)
    engine, embeds_only = _engine(options)
    if not await _unless_stopped(engine, stop):
        return 0
    catalogue = Catalogue(options.names, [lora.name for lora in options.loras], options.model)
    app = App(engine, catalogue, options.max_num_seqs, keys=options.api_keys, embeds_only=embeds_only)
    runner = web.AppRunner(
        app.application(), access_log=None, shutdown_timeout=options.shutdown_timeout, handler_cancellation=True
    )
    await runner.setup()
    listener.listen(1024)
    await web.SockSite(runner, listener, ssl_context=certificate.context if certificate else None).start()
    log.info("serving %s on port %s", ", ".join(options.names), listener.getsockname()[1])
    watches = [asyncio.create_task(engine.keep_running())]
    if certificate is not None and options.ssl_refresh:
        watches.append(asyncio.create_task(tls.renew(certificate)))
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait([stopped, watches[0]], return_when=asyncio.FIRST_COMPLETED)
    app.draining = True
    await runner.cleanup()
    await engine.stop()
    for task in watches[1:]:
        task.cancel()
    await watches[0]  # raises what kept llama.cpp from starting
    return 0


def _engine(options: Options) -> tuple[Engine, bool]:
    from isvc.pods.llmserver.llama.engine import Engine

    if importlib.util.find_spec("xllamacpp") is None:
        raise ServerError("llama.cpp is not installed: pip install 'isvc[llm]'")
    path = find_model(options.model)
    embeds_only = read_header(path).embeds_only
    context = options.max_model_len or _DEFAULT_CONTEXT
    settings = {
        "model": str(path),
        "sequences": options.max_num_seqs,
        "context": context,
        # A model for embeddings has no logits to make room for: a batch may be as long as the context.
        "batch": context if embeds_only else min(_BATCH, context),
        "threads": options.threads,
        # llama.cpp finds prompts by their tokens alone, which is wrong where adapters differ.
        "prompt_cache_mib": 0 if options.loras else _PROMPT_CACHE_MIB,
        "embeds_only": embeds_only,
        "chat_template": _chat_template(options.chat_template),
        "loras": [str(find_adapter(lora.path)) for lora in options.loras],
    }
    return Engine(settings), embeds_only


async def _unless_stopped(engine: Engine, stop: asyncio.Event) -> bool:
    """Starts llama.cpp; False when a stop was asked for meanwhile."""
    starting, stopped = asyncio.create_task(engine.start()), asyncio.create_task(stop.wait())
    await asyncio.wait([starting, stopped], return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await engine.stop()
        return False
    stopped.cancel()
    await starting
    return True


def _chat_template(given: str | None) -> str | None:
    if given and "{" not in given:
        try:
            return Path(given).read_text()
        except OSError as error:
            raise ServerError(f"--chat-template {given} cannot be read: {error.strerror}") from None
    return given
