"""Variables for S3 and what speaks its protocol.

Every setting is looked for in three places: the annotations of the secret or service account, the secret's data, and
the ConfigMap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from isvc.api.resources import GROUP
from isvc.kube.objects import Object, annotations_of, name_of
from isvc.serving.config.sections import S3Config
from isvc.serving.containers import secret_variable, variable
from isvc.serving.credentials.lookup import secret_value

ACCESS_KEY_ID: Final = "awsAccessKeyID"
SECRET_ACCESS_KEY: Final = "awsSecretAccessKey"  # noqa: S105
CA_BUNDLE: Final = "AWS_CA_BUNDLE"
CA_BUNDLE_CONFIG_MAP: Final = "AWS_CA_BUNDLE_CONFIGMAP"

Setting = Callable[[str, str, str], str]


def secret_access_key_name(config: S3Config) -> str:
    """Returns the key by which a secret is recognised as one for S3."""
    return config.s3_secret_access_key_name or SECRET_ACCESS_KEY


def from_secret(secret: Object, config: S3Config) -> list[Object]:
    name = name_of(secret)
    return [
        secret_variable("AWS_ACCESS_KEY_ID", name, config.s3_access_key_id_name or ACCESS_KEY_ID),
        secret_variable("AWS_SECRET_ACCESS_KEY", name, secret_access_key_name(config)),
        *_settings(_reader(annotations_of(secret), secret), config),
    ]


def from_service_account(account: Object, config: S3Config) -> list[Object]:
    return _settings(_reader(annotations_of(account), None), config)


def _reader(annotations: dict[str, str], secret: Object | None) -> Setting:
    def read(annotation: str, key: str, configured: str) -> str:
        annotated = annotations.get(f"{GROUP}/{annotation}")
        if annotated is not None:
            return annotated
        stored = secret_value(secret, key) if secret is not None else None
        return configured if stored is None else stored

    return read


def _settings(read: Setting, config: S3Config) -> list[Object]:
    settings = {
        "S3_VERIFY_SSL": read("s3-verifyssl", "S3_VERIFY_SSL", config.s3_verify_ssl),
        "awsAnonymousCredential": read(
            "s3-useanoncredential", "awsAnonymousCredential", config.s3_use_anonymous_credential
        ),
        "AWS_DEFAULT_REGION": read("s3-region", "AWS_DEFAULT_REGION", config.s3_region),
        "S3_USER_VIRTUAL_BUCKET": read("s3-usevirtualbucket", "S3_USER_VIRTUAL_BUCKET", config.s3_use_virtual_bucket),
        "S3_USE_ACCELERATE": read("s3-useaccelerate", "S3_USE_ACCELERATE", config.s3_use_accelerate),
        CA_BUNDLE: read("s3-cabundle", CA_BUNDLE, config.s3_ca_bundle),
        CA_BUNDLE_CONFIG_MAP: read("s3-cabundle-configmap", CA_BUNDLE_CONFIG_MAP, config.s3_ca_bundle_config_map),
    }
    return _endpoint(read, config) + [variable(name, value) for name, value in settings.items() if value]


def _endpoint(read: Setting, config: S3Config) -> list[Object]:
    """Returns the endpoint, with the scheme it is written with or else the one that is configured; https by default."""
    configured = read("s3-endpoint", "S3_ENDPOINT", config.s3_endpoint)
    if not configured:
        return []
    url = configured.strip()
    if url.lower().startswith("https://"):
        use_https, host = "1", url[len("https://") :]
    elif url.lower().startswith("http://"):
        use_https, host = "0", url[len("http://") :]
    else:
        use_https, host = read("s3-usehttps", "S3_USE_HTTPS", config.s3_use_https), url
        url = f"{'http' if use_https == '0' else 'https'}://{host}"
    scheme = [variable("S3_USE_HTTPS", use_https)] if use_https else []
    return [*scheme, variable("S3_ENDPOINT", host), variable("AWS_ENDPOINT_URL", url)]
