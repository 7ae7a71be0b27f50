"""What names in Kubernetes look like. How long they may be depends on what they name."""

from __future__ import annotations

import re
from typing import Final

LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN: Final = rf"{LABEL}(\.{LABEL})*"
"""Both as the patterns of schemas have them."""

DNS_LABEL: Final = re.compile(LABEL)
DNS_1035_LABEL: Final = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")
DNS_SUBDOMAIN: Final = re.compile(SUBDOMAIN)
