"""What this machine has to give, in Kubernetes' units."""

from __future__ import annotations

import os


def capacity() -> dict[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024
    return {"cpu": str(os.cpu_count() or 1), "memory": f"{memory}Ki", "pods": "110"}
