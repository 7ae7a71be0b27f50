"""S3 and what speaks its protocol, through boto3."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from isvc.pods.stores.errors import Denied, Interrupted, StorageError, from_http_status, need
from isvc.pods.stores.settings import Settings


def client(settings: Settings) -> Any:
    boto3 = need("boto3", "s3")
    optional = {
        "endpoint_url": settings.get("AWS_ENDPOINT_URL"),
        "region_name": settings.get("AWS_DEFAULT_REGION"),
        "aws_access_key_id": settings.get("AWS_ACCESS_KEY_ID"),
        "aws_secret_access_key": settings.get("AWS_SECRET_ACCESS_KEY"),
        "aws_session_token": settings.get("AWS_SESSION_TOKEN"),
    }
    given = {name: value for name, value in optional.items() if value}
    try:
        return boto3.client("s3", config=_config(settings), verify=_verify(settings), **given)
    except ValueError as error:
        raise StorageError(f"S3: {error}") from error


def _config(settings: Settings) -> Any:
    botocore, config = need("botocore", "s3"), need("botocore.config", "s3")
    s3: dict[str, Any] = {}
    region = settings.get("AWS_DEFAULT_REGION", "us-east-1")
    # The old global endpoint answers for other regions only when the bucket is in the host name.
    global_endpoint = settings.get("AWS_ENDPOINT_URL") == "https://s3.amazonaws.com" and region != "us-east-1"
    if settings.flag("S3_USER_VIRTUAL_BUCKET") or global_endpoint:
        s3["addressing_style"] = "virtual"
    if settings.flag("S3_USE_ACCELERATE"):
        s3["use_accelerate_endpoint"] = True
    return config.Config(
        connect_timeout=settings.number("S3_CONNECT_TIMEOUT", 15),
        read_timeout=settings.number("S3_READ_TIMEOUT", 30),
        retries={"max_attempts": settings.number("S3_MAX_ATTEMPTS", 3), "mode": "standard"},
        signature_version=botocore.UNSIGNED if settings.flag("awsAnonymousCredential") else None,
        s3=s3 or None,
        # Many servers that speak the protocol know nothing of its newer checksums.
        response_checksum_validation="when_required",
    )


def _verify(settings: Settings) -> bool | str:
    if not settings.flag("S3_VERIFY_SSL", default=True):
        return False
    bundle = Path(settings.get("AWS_CA_BUNDLE")) if settings.get("AWS_CA_BUNDLE") else settings.ca_bundle
    if bundle is None:
        return True
    if not bundle.exists():
        raise StorageError(f"CA certificates {bundle} do not exist")
    return str(bundle)


@contextmanager
def explain_errors(where: str) -> Iterator[None]:
    """Turns boto3's errors into ours."""
    exceptions = need("botocore.exceptions", "s3")
    try:
        yield
    except exceptions.ClientError as error:
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
        if status == 412:
            raise StorageError(f"{where} changed while it was downloaded") from error
        raise from_http_status(status, where, error.response.get("Error", {}).get("Code", "")) from error
    except exceptions.NoCredentialsError as error:
        advice = "name a ServiceAccount that has them, or set awsAnonymousCredential for a public bucket"
        raise Denied(f"{where}: no credentials were given, so that nobody was asked: {advice}") from error
    except (exceptions.HTTPClientError, exceptions.ConnectionError, exceptions.IncompleteReadError) as error:
        raise Interrupted(f"{where}: {error}") from error
    except exceptions.BotoCoreError as error:
        raise StorageError(f"{where}: {error}") from error
