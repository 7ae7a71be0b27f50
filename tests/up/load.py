"""Clients of a service on `isvc up` that ask many times, or many at a time."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

BODY = json.dumps({"instances": [[6.8, 2.8, 4.8, 1.4]]}).encode()


def ask(url: str, body: bytes = BODY) -> tuple[int, bytes]:
    """Status and body of the answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=120) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def ask_at_once(url: str, clients: int) -> list[tuple[int, bytes]]:
    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(lambda _: ask(url), range(clients)))


@contextmanager
def load(url: str, clients: int = 4) -> Iterator[list[tuple[int, bytes]]]:
    """Clients that ask again and again; what they were answered that is no success."""
    over = threading.Event()
    failures: list[tuple[int, bytes]] = []

    def keep_asking() -> None:
        while not over.is_set():
            answer = ask(url)
            if answer[0] != 200:
                failures.append(answer)

    threads = [threading.Thread(target=keep_asking) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield failures
    finally:
        over.set()
        for thread in threads:
            thread.join()
