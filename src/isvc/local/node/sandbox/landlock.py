"""Landlock, by which a Linux process without any rights takes files, ports and signals from itself and its children.

A ruleset is made and filled by the parent; the child only puts it into force, between fork and exec, where little may
be done. See landlock(7); each ABI version adds what can be restricted.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
from enum import IntFlag
from pathlib import Path
from typing import Final

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on all architectures
_RULESET_VERSION: Final = 1
_PATH_BENEATH, _NET_PORT = 1, 2
_PR_SET_NO_NEW_PRIVS: Final = 38
_CAPABILITIES_OF_THIS_THREAD: Final = struct.pack("=Ii", 0x20080522, 0)  # version 3 of capset(2)
_NO_CAPABILITIES: Final = bytes(24)
FILES_ABI, PORTS_ABI, SIGNALS_ABI = 1, 4, 6
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class Access(IntFlag):
    """To files and folders. The later ones came with ABI 2, 3 and 5."""

    EXECUTE = 1 << 0
    WRITE_FILE = 1 << 1
    READ_FILE = 1 << 2
    READ_DIR = 1 << 3
    REMOVE_DIR = 1 << 4
    REMOVE_FILE = 1 << 5
    MAKE_CHAR = 1 << 6
    MAKE_DIR = 1 << 7
    MAKE_REG = 1 << 8
    MAKE_SOCK = 1 << 9
    MAKE_FIFO = 1 << 10
    MAKE_BLOCK = 1 << 11
    MAKE_SYM = 1 << 12
    REFER = 1 << 13
    TRUNCATE = 1 << 14
    IOCTL_DEV = 1 << 15


class Network(IntFlag):
    BIND_TCP = 1 << 0
    CONNECT_TCP = 1 << 1


READ: Final = Access.EXECUTE | Access.READ_FILE | Access.READ_DIR
WRITE: Final = (
    READ | Access.WRITE_FILE | Access.REMOVE_DIR | Access.REMOVE_FILE | Access.MAKE_DIR | Access.MAKE_REG
    | Access.MAKE_FIFO | Access.MAKE_SYM | Access.REFER | Access.TRUNCATE
)  # fmt: skip
DEVICE: Final = Access.READ_FILE | Access.WRITE_FILE | Access.IOCTL_DEV
OF_A_FILE: Final = (
    Access.EXECUTE | Access.WRITE_FILE | Access.READ_FILE | Access.TRUNCATE | Access.IOCTL_DEV
)  # what a rule for something else than a folder may grant
_SCOPES: Final = 0b11  # abstract sockets and signals stay among the confined


def abi() -> int:
    """Returns what the kernel offers; 0 for nothing."""
    if _libc is None:
        return 0
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_RULESET_VERSION))))


class Ruleset:
    """Everything is forbidden but what is allowed. With `connects` false, connections are not looked at."""

    def __init__(self, *, connects: bool) -> None:
        self._abi = abi()
        self._files = Access((1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(self._abi, 16)) - 1)
        self._network = Network.BIND_TCP | (Network.CONNECT_TCP if connects else Network(0))
        attributes = struct.pack("=QQQ", self._files, self._network, _SCOPES)
        size = 24 if self._abi >= SIGNALS_ABI else 16 if self._abi >= PORTS_ABI else 8
        self._fd = _syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0))

    def allow_path(self, path: Path, access: Access) -> None:
        """Allows a path, if it is there. It has to be real: one that a link has got into is refused."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                if os.readlink(f"/proc/self/fd/{fd}") != str(path):
                    raise PermissionError(f"{path} is reached through a link")
                allowed = access & self._files & (~Access(0) if path.is_dir() else OF_A_FILE)
                _syscall(
                    _ADD_RULE,
                    ctypes.c_int(self._fd),
                    ctypes.c_int(_PATH_BENEATH),
                    struct.pack("=Qi", allowed, fd),
                    ctypes.c_uint32(0),
                )
            finally:
                os.close(fd)

    def allow_port(self, port: int, access: Network) -> None:
        if self._abi >= PORTS_ABI and access & self._network:
            rule = struct.pack("=QQ", access & self._network, port)
            _syscall(_ADD_RULE, ctypes.c_int(self._fd), ctypes.c_int(_NET_PORT), rule, ctypes.c_uint32(0))

    def put_into_force(self) -> None:
        """Confines this thread and all its children, for good, and drops root's privileges, which lead around it."""
        assert _libc is not None
        if (
            _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            or _libc.capset(_CAPABILITIES_OF_THIS_THREAD, _NO_CAPABILITIES)
            or _libc.syscall(_RESTRICT_SELF, ctypes.c_int(self._fd), ctypes.c_uint32(0))
        ):
            raise OSError(ctypes.get_errno(), "cannot confine the process")

    def close(self) -> None:
        os.close(self._fd)


def _syscall(number: int, *arguments: object) -> int:
    assert _libc is not None
    result = int(_libc.syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"landlock: {os.strerror(code)}")
    return result
