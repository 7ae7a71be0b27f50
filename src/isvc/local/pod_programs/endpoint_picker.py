"""Runs in place of an endpoint picker: accepts connections, so that its Deployment becomes ready, and does no more.

On a cluster a gateway asks the picker for each request. Here the gateway picks itself
(`local/gateway/endpoints/picker`): it reads the same metrics of the model servers, and saves every request a detour.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os

log = logging.getLogger("isvc.endpoint_picker")


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    here = json.loads(os.environ.get("ISVC_PORTS", "{}"))
    flags = argparse.ArgumentParser(prog="epp", description=__doc__)
    flags.add_argument("-grpc-port", "--grpc-port", type=int, default=here.get("9002", 9002))
    flags.add_argument("-grpc-health-port", "--grpc-health-port", type=int, default=here.get("9003", 9003))
    given, _ = flags.parse_known_args()
    asyncio.run(_accept(given.grpc_port, given.grpc_health_port))


async def _accept(*ports: int) -> None:
    servers = [await asyncio.start_server(_hang_up, "127.0.0.1", port) for port in ports]
    log.info(
        "the gateway of this machine picks endpoints itself, by queue, cache use and prefix; it asks nothing of this"
        " process, and does not read its configuration"
    )
    await asyncio.gather(*(server.serve_forever() for server in servers))


async def _hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


if __name__ == "__main__":
    main()
