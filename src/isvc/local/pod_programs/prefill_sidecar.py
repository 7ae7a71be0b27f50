"""Runs in place of the sidecar that has prompts read by a prefill server: passes every request to the server beside it.

llama.cpp cannot hand the cache of a prompt to another process, so the server that answers reads the prompt, too.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging

log = logging.getLogger("isvc.prefill_sidecar")

_CHUNK = 1 << 16


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    flags = argparse.ArgumentParser(prog="pd-sidecar", description=__doc__)
    flags.add_argument("-port", "--port", type=int, required=True)
    flags.add_argument("-vllm-port", "--vllm-port", type=int, required=True)
    given, _ = flags.parse_known_args()
    asyncio.run(_serve(given.port, given.vllm_port))


async def _serve(port: int, behind: int) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _pass_on(reader, writer, behind)

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    log.warning(
        "prefill and decode run as one: llama.cpp cannot hand a prompt's cache to another server, so this pod's server"
        " reads prompts itself and the prefill servers get no requests"
    )
    await server.serve_forever()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    try:
        answers, requests = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        writer.close()
        return
    try:
        await asyncio.gather(_copy(reader, requests), _copy(answers, writer))
    finally:
        writer.close()
        requests.close()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copies until the source ends, and then ends the target."""
    with contextlib.suppress(OSError):
        while chunk := await source.read(_CHUNK):
            target.write(chunk)
            await target.drain()
        target.write_eof()


if __name__ == "__main__":
    main()
