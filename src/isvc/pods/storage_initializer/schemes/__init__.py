"""Which module brings what, by the look of its URI; a module is imported when it is needed."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Final

from isvc.pods.stores.errors import Unsupported
from isvc.pods.stores.settings import Settings

# Pattern, module, and what users call it. The first pattern that matches counts: plain HTTP comes last, since several
# stores have https addresses.
MODULES: Final = (
    (r"(file|pvc)://|/", "local", "file, pvc"),
    (r"gs://", "gcs", "gs"),
    (r"s3://", "s3", "s3"),
    (r"(web)?hdfs://", "webhdfs", "hdfs, webhdfs"),
    (r"hf://", "huggingface", "hf"),
    (r"modelscope://", "modelscope", "modelscope"),
    (r"oci://", "oci", "oci"),
    (r"https://[^/]+\.blob\.(core\.windows\.net|storage\.azure\.net)/", "azure_blob", "Azure's blobs"),
    (r"https://[^/]+\.file\.(core\.windows\.net|storage\.azure\.net)/", "azure_file", "Azure's file shares"),
    (r"https?://[^?#]+\.git/?(#.*)?$", "git", "git over http and https"),
    (r"https?://", "http", "http, https"),
)


def fetch(uri: str, folder: Path, settings: Settings) -> None:
    """Brings everything at the URI into the folder."""
    for pattern, module, _ in MODULES:
        if re.match(pattern, uri):
            importlib.import_module(f"{__name__}.{module}").fetch(uri, folder, settings)
            return
    raise Unsupported(f"{uri}: unknown kind of storage; known are {', '.join(name for *_, name in MODULES)}")
