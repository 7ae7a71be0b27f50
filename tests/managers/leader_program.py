"""A manager in a process of its own: it competes for a lease and, while it leads, writes its name again and again.

Run as: leader_program.py KUBECONFIG NAMESPACE IDENTITY. Each write is a ConfigMap named after its time and writer, so
that a test can tell from the server's side who acted when.
"""

from __future__ import annotations

import asyncio
import sys

from isvc.kube.objects import Key
from isvc.kube.resource import CONFIG_MAPS
from isvc.programs.flags import run_or_exit
from isvc.toolkit import logs
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client, kubeconfig
from isvc.toolkit.controller import Controller, Result
from isvc.toolkit.election import Election
from isvc.toolkit.manager import Manager


async def main(path: str, namespace: str, identity: str) -> None:
    async with Client.connect(kubeconfig.load(path)) as client:
        cache = Cache(client)
        writes = 0

        async def reconcile(key: Key) -> Result:
            nonlocal writes
            writes += 1
            metadata = {"name": f"{identity}-{writes}", "namespace": namespace, "labels": {"writer": identity}}
            manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            await client.create(CONFIG_MAPS, manifest)
            return Result(requeue_after=0.05)

        controller = Controller("writer", reconcile, [])
        election = Election(
            client, "leader", namespace, identity=identity, lease_seconds=8, renew_seconds=6, retry_seconds=1.5
        )
        manager = Manager(client, cache, controllers=[controller], election=election)
        election_won = asyncio.create_task(_seed(election, controller))
        try:
            await manager.run()
        finally:
            election_won.cancel()


async def _seed(election: Election, controller: Controller) -> None:
    while not election.holds():
        await asyncio.sleep(0.05)
    controller.queue.add(Key("", "tick"))


if __name__ == "__main__":
    logs.set_up("info", json=True)
    run_or_exit("leader_program", main(*sys.argv[1:]))
