"""Which module brings what, by the look of its URI; a module is imported when it is needed."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Final

from isvc.storage_initializer.errors import Unsupported
from isvc.storage_initializer.settings import Settings

# The first that matches; plain HTTP comes last, since several stores have https addresses.
MODULES: Final = (
    (r"(file|pvc)://|/", "local"),
    (r"gs://", "gcs"),
    (r"s3://", "s3"),
    (r"(web)?hdfs://", "webhdfs"),
    (r"hf://", "huggingface"),
    (r"oci://", "oci"),
    (r"https://[^/]+\.blob\.(core\.windows\.net|storage\.azure\.net)/", "azure_blob"),
    (r"https://[^/]+\.file\.(core\.windows\.net|storage\.azure\.net)/", "azure_file"),
    (r"https?://", "http"),
)


def fetch(uri: str, folder: Path, settings: Settings) -> None:
    """Bring everything at the URI into the folder."""
    for pattern, module in MODULES:
        if re.match(pattern, uri):
            importlib.import_module(f"{__name__}.{module}").fetch(uri, folder, settings)
            return
    raise Unsupported(
        f"{uri}: unknown kind of storage; known are file, pvc, gs, s3, hf, http, https, hdfs, webhdfs, oci and Azure's"
    )
