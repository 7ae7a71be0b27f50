"""TorchServe and KServe's image transformer as local programs, for the tests of transformers.

PyTorch's wheels have gigabytes, so they are no part of the locked environment: `TORCH=` names a Python that has torch,
torchvision, torchserve, torch-model-archiver and kserve; a Java is needed as well.

    python torchserve.py archive FOLDER      writes a model of digits as KServe's bucket has it
    python torchserve.py serve PORT ...      runs TorchServe; what comes to other ports is passed on to the first
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

_MODEL = "mnist"
_HANDLER = """\
import torch


class Digits:
    def initialize(self, context):
        self.model = torch.jit.load(context.system_properties["model_dir"] + "/digits.pt")

    def handle(self, rows, context):
        return self.model(torch.tensor([row["data"] for row in rows])).argmax(1).tolist()
"""


def archive(folder: Path) -> None:
    """Writes a linear model of scikit-learn's digits, enlarged to 28 by 28 pixels and normalised as they will come."""
    import torch
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    small = torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    enlarged = torch.nn.functional.interpolate(small, size=(20, 20), mode="bilinear")
    rows = (torch.nn.functional.pad(enlarged, (4, 4, 4, 4)) - 0.1307) / 0.3081
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(28 * 28, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003, weight_decay=0.01)
    for _ in range(150):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(rows), torch.tensor(digits)).backward()
        optimizer.step()
    store, config = folder / "model-store", folder / "config"
    store.mkdir(parents=True)
    config.mkdir()
    properties = f"load_models={_MODEL}.mar\nenable_envvars_config=true\ndisable_token_authorization=true\n"
    (config / "config.properties").write_text(properties)
    with tempfile.TemporaryDirectory() as sources:
        handler, weights = Path(sources, "handler.py"), Path(sources, "digits.pt")
        handler.write_text(_HANDLER)
        torch.jit.script(model).save(weights)
        archiver = Path(sys.executable).with_name("torch-model-archiver")
        names = ["--model-name", _MODEL, "--version", "1.0", "--export-path", store]
        subprocess.run([archiver, *names, "--serialized-file", weights, "--handler", handler], check=True)


async def serve(port: str, others: list[str], arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        for other in others:
            await asyncio.start_server(lambda reader, writer: _relay(reader, writer, port), "127.0.0.1", int(other))
        process = await asyncio.create_subprocess_exec(*_torchserve(port, arguments, Path(folder)), cwd=folder)
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()


def _torchserve(port: str, arguments: list[str], folder: Path) -> list[str]:
    """Returns a command with the pod's own arguments, but for addresses."""
    given = dict(word.removeprefix("--").split("=", 1) for word in arguments if "=" in word)
    address, config = f"http://127.0.0.1:{port}", folder / "config.properties"
    config.write_text(
        Path(given["ts-config"]).read_text()
        + f"inference_address={address}\nmanagement_address={address}\nenable_metrics_api=false\n"
        + "grpc_inference_port=0\ngrpc_management_port=0\ndefault_workers_per_model=1\n"
    )
    command = [str(Path(sys.executable).with_name("torchserve")), "--start", "--foreground", "--ncs"]
    return [*command, "--disable-token-auth", f"--model-store={given['model-store']}", f"--ts-config={config}"]


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: str) -> None:
    """Passes a connection on, in the place of the wrapper that KServe's image has on a port of its own."""
    back, forth = await asyncio.open_connection("127.0.0.1", int(port))
    await asyncio.gather(_copy(reader, forth), _copy(back, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(65536):
        writer.write(chunk)
        await writer.drain()
    writer.close()


if __name__ == "__main__":
    if sys.argv[1] == "archive":
        archive(Path(sys.argv[2]))
    else:
        ports = [word for word in sys.argv[2:] if word.isdigit()]
        sys.exit(asyncio.run(serve(ports[0], ports[1:], sys.argv[2:])))
