"""Whether a model can be brought from where it is said to be, with or without a ClusterStorageContainer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from isvc.kube.objects import Object
from isvc.serving.refused import Refused
from isvc.serving.storage.containers import choose_storage_container
from isvc.storage_schemes import PREFIXES

_AZURE_HOST: Final = "blob.core.windows.net"
_AZURE: Final = re.compile(r"https://(.+?).blob.core.windows.net/(.+)")


def check_storage_uri(uri: str, storage_containers: Sequence[Object]) -> None:
    """Refuses a URI that neither a storage container nor the storage initializer supports."""
    if choose_storage_container(uri, storage_containers) is not None or not re.search(r"\w+?://", uri):
        return
    if _AZURE.search(uri) if _AZURE_HOST in uri else uri.startswith(PREFIXES):
        return
    raise Refused(
        f"StorageURI not supported: storageUri, must be one of: [{', '.join(PREFIXES)}] or match "
        "https://{}.blob.core.windows.net/{}/{} or be an absolute or relative local path. "
        f"StorageUri [{uri}] is not supported"
    )
