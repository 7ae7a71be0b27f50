"""Logs in with Kerberos: the tokens of HTTP's `Negotiate`, from the system's own library, by way of ctypes.

A keytab is all it takes: MIT's library gets and renews tickets by itself. `/etc/krb5.conf` is read if it is there; the
servers of a realm may also be found by DNS.
"""

from __future__ import annotations

import base64
import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_size_t, c_uint32, c_void_p
from pathlib import Path
from typing import Any, Final

from isvc.pods.stores.errors import Denied, Unsupported

LIBRARY: Final = "libgssapi_krb5.so.2"
_INITIATE: Final = 1
_FAILED: Final = 0xFFFF0000  # the bits of a status that are errors
_GSS_CODE, _MECH_CODE = 1, 2
_SPNEGO: Final = b"\x2b\x06\x01\x05\x05\x02"
_KRB5: Final = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"
_USER_NAME: Final = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x01"
_HOST_SERVICE: Final = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04"


class _Text(ctypes.Structure):
    """Bytes with their length: a buffer, or the identifier of a kind of name or mechanism."""

    _fields_ = (("length", c_size_t), ("value", c_char_p))


class _Buffer(ctypes.Structure):
    _fields_ = (("length", c_size_t), ("value", c_void_p))


class _Identifier(ctypes.Structure):
    _fields_ = (("length", c_uint32), ("elements", c_char_p))


class _Identifiers(ctypes.Structure):
    _fields_ = (("count", c_size_t), ("elements", POINTER(_Identifier)))


class Kerberos:
    def __init__(self, principal: str, keytab: Path, config: Path | None = None) -> None:
        """`config` takes the place of /etc/krb5.conf."""
        os.environ |= {"KRB5_CLIENT_KTNAME": f"FILE:{keytab}", "KRB5CCNAME": "MEMORY:isvc"}
        if config is not None:
            os.environ["KRB5_CONFIG"] = str(config)
        try:
            self._library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise Unsupported(f"Kerberos needs {LIBRARY}, of Debian's package libgssapi-krb5-2: {error}") from error
        self._principal = principal
        self._credential = c_void_p()
        name = self._name(principal, _USER_NAME)
        kerberos, negotiated = (_Identifiers(1, ctypes.pointer(_identifier(each))) for each in (_KRB5, _SPNEGO))
        for mechanisms in (kerberos, negotiated):  # the first knows better what is wrong, the second is what is needed
            self._call(
                f"{principal} cannot log in with the keytab",
                "gss_acquire_cred", name, c_uint32(0), byref(mechanisms), _INITIATE, byref(self._credential), None,
                None,
            )  # fmt: skip

    def header(self, host: str) -> dict[str, str]:
        """Returns a header that proves to a server of that name who we are; each is good for one request."""
        context, token = c_void_p(), _Buffer()
        target = self._name(f"HTTP@{host}", _HOST_SERVICE)
        self._call(
            f"{self._principal} gets no ticket for HTTP on {host}",
            "gss_init_sec_context", self._credential, byref(context), target, byref(_identifier(_SPNEGO)), c_uint32(0),
            c_uint32(0), None, None, None, byref(token), None, None,
        )  # fmt: skip
        encoded = base64.b64encode(ctypes.string_at(token.value or 0, token.length)).decode()
        minor = c_uint32()
        self._library.gss_release_buffer(byref(minor), byref(token))
        self._library.gss_delete_sec_context(byref(minor), byref(context), None)
        return {"Authorization": f"Negotiate {encoded}"}

    def _name(self, text: str, kind: bytes) -> c_void_p:
        name, written = c_void_p(), text.encode()
        given = _Text(len(written), written)
        self._call(f"{text} is no name", "gss_import_name", byref(given), byref(_identifier(kind)), byref(name))
        return name

    def _call(self, problem: str, function: str, *arguments: Any) -> None:
        minor = c_uint32()
        status = getattr(self._library, function)(byref(minor), *arguments) & 0xFFFFFFFF
        if status & _FAILED:
            reasons = [self._explain(status, _GSS_CODE), self._explain(minor.value, _MECH_CODE)]
            raise Denied(f"Kerberos: {problem}: {': '.join(filter(None, reasons))}")

    def _explain(self, code: int, kind: int) -> str:
        minor, more, text = c_uint32(), c_uint32(), _Buffer()
        krb5 = _identifier(_KRB5)
        self._library.gss_display_status(byref(minor), c_uint32(code), kind, byref(krb5), byref(more), byref(text))
        explained = ctypes.string_at(text.value, text.length).decode(errors="replace") if text.value else ""
        self._library.gss_release_buffer(byref(minor), byref(text))
        return explained


def _identifier(elements: bytes) -> _Identifier:
    return _Identifier(len(elements), elements)
