"""The header block of SPDY/3: names and values, compressed with a dictionary that both ends know."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Final

_MAX_BLOCK = 1 << 16

_NAMES = """
options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow
authorization cache-control connection content-base content-encoding content-language content-length content-location
content-md5 content-range content-type date etag expect expires from host if-match if-modified-since if-none-match
if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate proxy-authorization range
referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get
status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin
"""
_REST = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _with_size(text: str) -> bytes:
    return struct.pack(">I", len(text)) + text.encode("latin-1")


DICTIONARY: Final = b"".join(_with_size(name.replace("_", " ")) for name in _NAMES.split()) + _REST.encode()


class Malformed(ValueError):
    """The peer's bytes are not SPDY/3.1."""


class HeaderReader:
    """One per connection: each block is compressed with what the ones before it contained."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)

    def read(self, block: bytes) -> dict[str, str]:
        try:
            plain = self._inflate.decompress(block, _MAX_BLOCK)
        except zlib.error as error:
            raise Malformed(f"the headers cannot be decompressed: {error}") from None
        if self._inflate.unconsumed_tail:
            raise Malformed("the headers are too large")
        try:
            return dict(_pairs(plain))
        except struct.error:
            raise Malformed("the headers end early") from None


def _pairs(plain: bytes) -> list[tuple[str, str]]:
    texts, at = [], 4
    for _ in range(2 * min(struct.unpack_from(">I", plain)[0], _MAX_BLOCK)):
        (size,) = struct.unpack_from(">I", plain, at)
        texts.append(plain[at + 4 : at + 4 + size].decode("latin-1"))
        at += 4 + size
    return [(name.lower(), value) for name, value in zip(texts[::2], texts[1::2], strict=True)]


class HeaderWriter:
    def __init__(self) -> None:
        self._deflate = zlib.compressobj(wbits=11, memLevel=1, zdict=DICTIONARY)  # 12 KiB, not 256

    def write(self, headers: Mapping[str, str]) -> bytes:
        plain = struct.pack(">I", len(headers)) + b"".join(
            _with_size(name) + _with_size(value) for name, value in headers.items()
        )
        return self._deflate.compress(plain) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
