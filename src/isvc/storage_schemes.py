"""Where models can be stored: one row for each kind of storage.

Controllers and webhooks accept what is here, the storage initializer finds the module that brings it, and the shipped
ClusterStorageContainer lists it (`make manifests`). Managers share it with programs in pods: it imports nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """A kind of storage.

    `module`    in `isvc.pods.storage_initializer.schemes`; empty where nothing is downloaded under that name
    `prefixes`  what its URIs start with
    `address`   a pattern of its URIs where a prefix does not tell them from others; it counts before any prefix
    `regex`     the same as ClusterStorageContainers have it, if prefixes do not say it
    `name`      what people call it, if not by its prefixes
    `mounted`   whether pods have it as a volume, so that no ClusterStorageContainer is looked for
    `storage`   whether a model's `storage` may be of this type, with its settings in a Secret
    `token`     the key in a Secret, and the variable, that opens private models
    """

    module: str = ""
    prefixes: tuple[str, ...] = ()
    address: str = ""
    regex: str = ""
    name: str = ""
    mounted: bool = False
    storage: bool = False
    token: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,) if self.name else tuple(prefix.removesuffix("://") for prefix in self.prefixes)


SCHEMES: Final = (
    Scheme(module="gcs", prefixes=("gs://",)),
    Scheme(module="s3", prefixes=("s3://",), storage=True),
    Scheme(module="local", prefixes=("pvc://", "file://"), address=r"/", mounted=True),
    Scheme(module="http", prefixes=("https://", "http://"), regex=r"https?://(.+)/(.+)"),
    Scheme(module="webhdfs", prefixes=("hdfs://", "webhdfs://"), storage=True),
    Scheme(module="oci", prefixes=("oci://",), mounted=True),
    Scheme(prefixes=("oci+native://", "oci+fetch://"), mounted=True),
    Scheme(module="huggingface", prefixes=("hf://",), token="HF_TOKEN"),  # noqa: S106
    Scheme(module="modelscope", prefixes=("modelscope://",), token="MODELSCOPE_API_TOKEN"),  # noqa: S106
    Scheme(
        module="azure_blob",
        address=r"https://[^/]+\.blob\.(core\.windows\.net|storage\.azure\.net)/",
        regex=r"https://(.+?).blob.core.windows.net/(.+)",
        name="Azure's blobs",
    ),
    Scheme(
        module="azure_file",
        address=r"https://[^/]+\.file\.(core\.windows\.net|storage\.azure\.net)/",
        regex=r"https://(.+?).file.core.windows.net/(.+)",
        name="Azure's file shares",
    ),
    Scheme(module="git", address=r"https?://[^?#]+\.git/?(#.*)?$", name="git over http and https"),
)
PREFIXES: Final = tuple(prefix for scheme in SCHEMES for prefix in scheme.prefixes)
