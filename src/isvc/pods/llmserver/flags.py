"""vLLM's command line, as far as it means something to llama.cpp; other flags are named and ignored.

KServe's Hugging Face server takes the same values under names of its own (`--model_name`, `--model_dir`,
`--http_port`); as in vLLM, `_` and `-` are the same in a flag.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isvc.pods.llmserver.errors import ServerError

_MODEL = "/mnt/models"
VLLM_VERSION = "0.22.0"  # whose flags and API this server follows; start scripts ask for it to choose flags


@dataclass(frozen=True, slots=True)
class LoraModule:
    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class Options:
    model: str
    names: tuple[str, ...]  # the first is the one that responses carry
    host: str
    port: int
    max_model_len: int | None
    max_num_seqs: int
    threads: int
    loras: tuple[LoraModule, ...]
    api_keys: tuple[str, ...]
    chat_template: str | None
    ssl_certfile: str | None
    ssl_keyfile: str | None
    ssl_ca_certs: str | None
    ssl_cert_reqs: int
    ssl_refresh: bool
    shutdown_timeout: float


def parse(argv: Sequence[str]) -> tuple[Options, list[str]]:
    """Returns the options, and the flags that have no meaning here."""
    words = list(argv)
    if words[:1] == ["serve"]:
        del words[0]
    elif words[:2] == ["launch", "render"]:  # vLLM's server that tokenizes alone: this one does that, too
        del words[:2]
    # Only the first word can be `vllm serve`'s model: a later one may be the value of a flag that is unknown here.
    positional = words.pop(0) if words and not words[0].startswith("-") else None
    parsed, rest = parser().parse_known_args([_with_dashes(word) for word in words])
    model = parsed.model or positional or parsed.model_dir or os.environ.get("ISVC_MODEL_DIR", _MODEL)
    names = parsed.served_model_name or ([parsed.model_name] if parsed.model_name else [model])
    keys = parsed.api_key or ([os.environ["VLLM_API_KEY"]] if os.environ.get("VLLM_API_KEY") else [])
    options = Options(
        model=model,
        names=tuple(names),
        host=parsed.host,
        port=parsed.port,
        max_model_len=parsed.max_model_len,
        max_num_seqs=max(1, parsed.max_num_seqs),
        threads=max(1, parsed.threads or _default_threads()),
        loras=tuple(module for text in parsed.lora_modules or () for module in lora_modules(text)),
        api_keys=tuple(keys),
        chat_template=parsed.chat_template,
        ssl_certfile=parsed.ssl_certfile,
        ssl_keyfile=parsed.ssl_keyfile,
        ssl_ca_certs=parsed.ssl_ca_certs,
        ssl_cert_reqs=parsed.ssl_cert_reqs,
        ssl_refresh=parsed.enable_ssl_refresh,
        shutdown_timeout=parsed.shutdown_timeout,
    )
    return options, [word.partition("=")[0] for word in rest if word.startswith("-") and not _is_number(word)]


def parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser(prog="python -m isvc.pods.llmserver", description=__doc__, allow_abbrev=False)
    flags.add_argument("--model", help="a GGUF file, or a folder that holds one")
    flags.add_argument("--model-dir", "--model-id", help="KServe's name for --model")
    flags.add_argument("--served-model-name", nargs="+", help="names of the model in requests")
    flags.add_argument("--model-name", help="KServe's name for --served-model-name")
    flags.add_argument("--host", default=os.environ.get("ISVC_HOST", "0.0.0.0"), help="address to listen on")  # noqa: S104
    flags.add_argument(
        "--port", "--http-port", type=int, default=int(os.environ.get("PORT") or 8000), help="port to listen on"
    )
    flags.add_argument("--max-model-len", type=token_count, help="longest prompt and answer together, in tokens")
    flags.add_argument("--max-num-seqs", type=int, default=4, help="answers generated at the same time; others wait")
    flags.add_argument("--threads", type=int, help="threads that compute; half of the processors if left out")
    flags.add_argument("--enable-lora", action="store_true", help="implied by --lora-modules")
    flags.add_argument("--lora-modules", nargs="+", help="NAME=PATH or JSON, one for each adapter")
    flags.add_argument("--api-key", nargs="+", help="keys of which a client must present one")
    flags.add_argument("--chat-template", help="a Jinja template, or the file that holds it")
    flags.add_argument("--ssl-certfile", help="the server's certificate; HTTPS instead of HTTP")
    flags.add_argument("--ssl-keyfile", help="its private key")
    flags.add_argument("--ssl-ca-certs", help="authorities whose client certificates are accepted")
    flags.add_argument("--ssl-cert-reqs", type=int, default=0, choices=[0, 1, 2],
                       help="client certificates: 0 not asked for, 1 optional, 2 required")  # fmt: skip
    flags.add_argument("--enable-ssl-refresh", action="store_true", help="reload the certificate when it changes")
    flags.add_argument("--shutdown-timeout", type=float, default=30, help="seconds for running requests at SIGTERM")
    return flags


def _default_threads() -> int:
    """Returns half of the processors: threads of llama.cpp that wait for a busy one slow each other down tenfold."""
    return int(os.environ.get("OMP_NUM_THREADS") or 0) or (os.cpu_count() or 2) // 2


def token_count(text: str) -> int | None:
    """`8192`, `8k` (8,000) or `8K` (8,192); `-1` and `auto` leave the length to the server."""
    if text in ("-1", "auto"):
        return None
    factor = {"k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20}.get(text[-1:], 1)
    count = int(float(text[:-1]) * factor) if factor > 1 else int(text)
    if count < 1:
        raise ValueError("at least one token")
    return count


def lora_modules(text: str) -> list[LoraModule]:
    """`NAME=PATH`, `{"name": …, "path": …}` or a JSON list of such objects."""
    try:
        if not text.lstrip().startswith(("{", "[")):
            name, _, path = text.partition("=")
            found = [{"name": name, "path": path}]
        else:
            value = json.loads(text)
            found = value if isinstance(value, list) else [value]
        modules = [LoraModule(str(item["name"]), Path(item["path"])) for item in found if item["path"]]
    except (ValueError, KeyError, TypeError):
        modules = []
    if not modules:
        raise ServerError(f"--lora-modules takes NAME=PATH or JSON with name and path, not {text}")
    return modules


def _with_dashes(word: str) -> str:
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value if name.startswith("--") else word


def _is_number(word: str) -> bool:
    return word.lstrip("-").replace(".", "", 1).isdigit()
