"""Which module brings what, by the table of schemes; a module is imported when it is needed."""

from __future__ import annotations

import importlib
import re
from itertools import chain
from pathlib import Path

from isvc.pods.stores.errors import Unsupported
from isvc.pods.stores.settings import Settings
from isvc.storage_schemes import SCHEMES, Scheme


def fetch(uri: str, folder: Path, settings: Settings) -> None:
    """Brings everything at the URI into the folder."""
    scheme = find_scheme(uri)
    if scheme is None:
        known = ", ".join(name for each in SCHEMES if each.module for name in each.names)
        raise Unsupported(f"{uri}: unknown kind of storage; known are {known}")
    importlib.import_module(f"{__name__}.{scheme.module}").fetch(uri, folder, settings)


def find_scheme(uri: str) -> Scheme | None:
    """Returns what brings the URI: several stores have https addresses, so that prefixes count last."""
    downloaded = [scheme for scheme in SCHEMES if scheme.module]
    by_address = (scheme for scheme in downloaded if scheme.address and re.match(scheme.address, uri))
    by_prefix = (scheme for scheme in downloaded if uri.startswith(scheme.prefixes))
    return next(chain(by_address, by_prefix), None)
