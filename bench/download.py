"""The storage initializer beside curl: a large file over HTTP on this machine, whole and with connections that are cut.

    python bench/download.py [--gigabytes 2] [--cuts 10]

Time, CPU and memory of both, in turns; every file is compared with the original. curl goes on with `--continue-at`,
started anew after each cut: its own `--retry` begins the file again.
"""

from __future__ import annotations

import argparse
import filecmp
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROUNDS = 3


class Server(BaseHTTPRequestHandler):
    """Sends a file, or the part that was asked for, by the system's sendfile; the first answers are cut off."""

    protocol_version = "HTTP/1.1"
    file: Path
    cuts: Iterator[int]
    cut_after: int

    def do_GET(self) -> None:
        size = self.file.stat().st_size
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        start, end = (int(asked[1]), int(asked[2] or size - 1) + 1) if asked else (0, size)
        self.send_response(206 if asked else 200)
        headers = {"Content-Length": end - start, "ETag": '"one"', "Accept-Ranges": "bytes", "Content-Type": "a/b"}
        if asked:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.flush()
        if next(self.cuts, 0):
            end = min(end, start + self.cut_after)
            self.close_connection = True
        with self.file.open("rb") as file:
            while start < end and (sent := os.sendfile(self.connection.fileno(), file.fileno(), start, end - start)):
                start += sent

    def handle(self) -> None:
        with suppress(OSError):  # a client that has its part hangs up
            super().handle()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(file: Path, cuts: int) -> Iterator[str]:
    size = file.stat().st_size
    # Half of the file comes through connections that are cut, whoever asks.
    handler = type(
        "Bound", (Server,), {"file": file, "cuts": iter([1] * cuts), "cut_after": size // (2 * max(cuts, 1))}
    )
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/model.bin"
    finally:
        server.shutdown()
        server.server_close()


def measure(command: list[str], produced: Path, original: Path) -> tuple[float, float, int]:
    """Returns seconds, CPU seconds and the most memory in MiB; a command that fails goes on where it stopped."""
    memory, cpu, started = 0, 0.0, time.perf_counter()
    status = -1
    while status:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            memory = max(memory, peak_memory(process.pid))
            time.sleep(0.01)
        process.returncode = status = ended[1]
        cpu += ended[2].ru_utime + ended[2].ru_stime
    elapsed = time.perf_counter() - started
    assert filecmp.cmp(produced, original, shallow=False), f"{produced} differs"
    return elapsed, cpu, memory


def peak_memory(pid: int) -> int:
    """Returns MiB; `ru_maxrss` would count what this process had when it forked."""
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) // 1024 if found else 0


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--gigabytes", type=float, default=2)
    options.add_argument("--cuts", type=int, default=10)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        original, target = Path(folder) / "original", Path(folder) / "target"
        with original.open("wb") as file:
            for _ in range(int(given.gigabytes * 64)):
                file.write(os.urandom(1 << 24))
        print(f"{given.gigabytes:g} GiB{'':20}  seconds      CPU   memory")
        best: dict[str, tuple[float, float, int]] = {}
        for _, cuts in itertools.product(range(ROUNDS), (0, given.cuts)):
            for name in ("curl", "storage initializer"):
                shutil.rmtree(target, ignore_errors=True)
                target.mkdir()
                with serving(original, cuts) as url:
                    curl = ["curl", "--silent", "--continue-at", "-", "--output", str(target / "model.bin"), url]
                    own = [sys.executable, "-m", "isvc.pods.storage_initializer", url, str(target)]
                    found = measure(curl if name == "curl" else own, target / "model.bin", original)
                key = f"{name}, {cuts} cuts" if cuts else name
                best[key] = min(best.get(key, found), found)
        for name, (elapsed, cpu, memory) in best.items():
            print(f"{name:28} {elapsed:8.2f} {cpu:8.2f} {memory:5} MiB")


if __name__ == "__main__":
    main()
