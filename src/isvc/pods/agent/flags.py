"""The agent's command line: KServe's flags, as Go reads them, and a few of our own."""

from __future__ import annotations

import argparse
import re

_MODES = ("all", "request", "response")
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h))")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser(prog="isvc-agent", allow_abbrev=False, description=__doc__)
    flags.add_argument("--host", default="0.0.0.0", help="address to listen on")  # noqa: S104
    flags.add_argument("--port", type=int, default=9081, help="port to listen on")
    flags.add_argument("--component-port", type=int, default=8080, help="where the model server listens")
    flags.add_argument("--metrics-port", type=int, default=9082, help="port of /metrics; 0 for none")
    flags.add_argument("--drain-seconds", type=float, default=30, help="how long to serve on after SIGTERM")
    flags.add_argument("--probe-period", help="a flag of KServe's agent that neither program uses")

    puller = flags.add_argument_group("models")
    _switch(puller, "--enable-puller", "fetch the models that models.json lists")
    puller.add_argument("--config-dir", default="/mnt/configs", help="folder of models.json")
    puller.add_argument("--model-dir", default="/mnt/models", help="folder for models")

    logger = flags.add_argument_group("logging of payloads")
    logger.add_argument("--log-url", default="", help="where events are sent (http, https) or kept (s3, gs, abfs, …)")
    logger.add_argument("--log-mode", default="all", choices=_MODES, help="what is logged")
    logger.add_argument("--workers", type=positive, default=5, help="events that are sent at a time")
    logger.add_argument("--source-uri", default="", help="the events' source")
    for name in ("inference-service", "namespace", "endpoint", "component"):
        logger.add_argument(f"--{name}", default="", help="an attribute of the events")
    logger.add_argument("--metadata-headers", type=words, default=[], help="headers to add, separated by commas")
    logger.add_argument("--metadata-annotations", type=pairs, default={}, help="key=value, separated by commas")
    logger.add_argument(
        "--logger-ca-cert-file", default="service-ca.crt", help="authority of the sink, in /etc/tls/logger"
    )
    _switch(logger, "--logger-tls-skip-verify", "do not check the sink's certificate")

    store = flags.add_argument_group("logs in a store")
    store.add_argument("--log-store-path", default="", help="a folder in the store, below that of the service")
    store.add_argument("--log-store-format", default="json", help="json, csv or parquet")
    store.add_argument("--log-batch-size", type=positive, default=1, help="records of an object")
    store.add_argument("--log-batch-interval", type=duration, default=0.0, help="how long a record waits for others")
    store.add_argument("--log-marshaller-url", default="", help="a service that writes records in another format")
    store.add_argument(
        "--log-marshaller-port", type=int, default=9083, help="of KServe's own marshaller; here it has none"
    )

    batcher = flags.add_argument_group("batches")
    _switch(batcher, "--enable-batcher", "join requests into batches")
    batcher.add_argument("--max-batchsize", type=positive, default=32, help="instances that make a full batch")
    batcher.add_argument(
        "--max-latency", type=positive, default=5000, help="how long a batch waits to fill up, in milliseconds"
    )
    return flags


def boolean(text: str) -> bool:
    if text.lower() in ("1", "t", "true"):
        return True
    if text.lower() in ("0", "f", "false"):
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")


def _switch(group: argparse._ArgumentGroup, name: str, text: str) -> None:
    """`--flag`, `--flag=true` and `--flag true`."""
    group.add_argument(name, type=boolean, nargs="?", const=True, default=False, help=text)


def positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


def duration(text: str) -> float:
    """Returns the seconds of `1m30s`, as Go writes durations."""
    if text == "0" or ((found := _DURATION.findall(text)) and "".join(map("".join, found)) == text):
        return sum(float(number) * _SECONDS[unit] for number, unit in _DURATION.findall(text))
    raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 5s or 1m30s")


def words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def pairs(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in words(text):
        key, equals, value = pair.partition("=")
        if not equals:
            raise argparse.ArgumentTypeError(f"{pair!r} is no key=value")
        found[key] = value
    return found
