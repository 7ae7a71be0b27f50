"""The S3 of KServe's own runs: a bucket with a model, one for payload logs, and their credentials in the cluster."""

from __future__ import annotations

import contextlib
import json
import logging
import subprocess
from collections.abc import Iterator
from pathlib import Path

_REGION, _KEY, _SECRET = "us-south", "s3admin", "s3admin123"
_MODELS, _LOGS = "example-models", "logger-output"


@contextlib.contextmanager
def s3(model: Path) -> Iterator[str]:
    """Yields the address of a server with both buckets."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    try:
        address = "http://{}:{}".format(*server.get_host_and_port())
        client = boto3.client(
            "s3", endpoint_url=address, region_name=_REGION, aws_access_key_id=_KEY, aws_secret_access_key=_SECRET
        )
        for bucket in (_MODELS, _LOGS):
            client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": _REGION})
        for path in model.iterdir():
            client.upload_file(str(path), _MODELS, f"sklearn/{path.name}")
        yield address
    finally:
        server.stop()


def store_credentials(address: str, namespace: str, environment: dict[str, str]) -> None:
    entry = {
        "type": "s3",
        "access_key_id": _KEY,
        "secret_access_key": _SECRET,
        "endpoint_url": address,
        "region": _REGION,
        "anonymous": "False",
    }
    entries = {"localS3": {**entry, "bucket": _MODELS}, "loggerS3": {**entry, "bucket": _LOGS}}
    literals = [f"--from-literal={name}={json.dumps(value)}" for name, value in entries.items()]
    command = ["kubectl", "create", "secret", "generic", "storage-config", "--namespace", namespace, *literals]
    subprocess.run(command, env=environment, check=True)
