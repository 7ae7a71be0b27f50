"""What this machine is and has to give, in Kubernetes' words and units."""

from __future__ import annotations

import os
import platform


def capacity() -> dict[str, str]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024
    return {"cpu": str(os.cpu_count() or 1), "memory": f"{memory}Ki", "pods": "110"}


def architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def node_labels(name: str) -> dict[str, str]:
    return {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": platform.system().lower(),
        "kubernetes.io/arch": architecture(),
    }
