"""How a download proves who it is: service accounts, their secrets, and the storage-config secret.

Pure: what had to be read from the cluster comes in as a `Lookup`. Whoever downloads gets references to secrets, never
their contents, except for HTTP headers, whose variable is named after a value inside the secret.
"""

from __future__ import annotations

from isvc.serving.credentials.lookup import Lookup
from isvc.serving.credentials.service_account import add_service_account_credentials
from isvc.serving.credentials.storage_spec import add_storage_entry, add_storage_spec_credentials

__all__ = ["Lookup", "add_service_account_credentials", "add_storage_entry", "add_storage_spec_credentials"]
