"""`kubectl cp` runs tar in the container and expects names in the archive as it asked for them.

A path of the container is another one on this machine, which tar would write into the archive.
"""

from __future__ import annotations

from collections.abc import Sequence


def copied_by_tar(asked: Sequence[str], translated: Sequence[str]) -> list[str]:
    """The translated command; a tar that makes an archive gives paths the names that were asked for."""
    if len(asked) < 3 or asked[0] != "tar" or "c" not in asked[1].lstrip("-"):
        return list(translated)
    renamed = [
        f"--transform=s,^{_escaped(path.strip('/'))},{_escaped(name.strip('/'))},"
        for name, path in zip(asked[2:], translated[2:], strict=True)
        if name != path
    ]
    return [*translated, *renamed]


def _escaped(text: str) -> str:
    return "".join(f"\\{letter}" if letter in r".*[]\^$,&" else letter for letter in text)
