"""A filter of system calls that takes Unix sockets from a process and its children.

Landlock does not look at connections to sockets in the file system, and some of them are ways out of any confinement:
Docker's runs anything as root, D-Bus starts programs outside, an ssh-agent lends keys. `socketpair` stays.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import socket
import struct
import sys
from typing import Final, NamedTuple

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_GREATER_OR_EQUAL, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in seccomp_data, little-endian
_X32: Final = 0x40000000  # a second set of numbers on x86_64
_IO_URING_SETUP: Final = 425  # would open sockets without a system call for each
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class _Machine(NamedTuple):
    architecture: int
    socket: int


_MACHINES: Final = {"x86_64": _Machine(0xC000003E, 41), "aarch64": _Machine(0xC00000B7, 198)}


def is_available() -> bool:
    return _libc is not None and platform.machine() in _MACHINES


class Filter:
    """Made by the parent, put into force by the child, which has to have given up new privileges before."""

    def __init__(self) -> None:
        instructions = _program(_MACHINES[platform.machine()])
        self._instructions = ctypes.create_string_buffer(b"".join(instructions), 8 * len(instructions))
        self._program = struct.pack("@HP", len(instructions), ctypes.addressof(self._instructions))

    def put_into_force(self) -> None:
        assert _libc is not None
        if _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, self._program, 0, 0):
            raise OSError(ctypes.get_errno(), "cannot filter the process's system calls")


def _program(machine: _Machine) -> list[bytes]:
    """Returns instructions of the classic packet filter: code, how many to skip if true, if false, and a value."""
    return [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_JUMP_IF_EQUAL, machine.architecture, 0, 7),
        _instruction(_LOAD, _NUMBER),
        _instruction(_JUMP_IF_GREATER_OR_EQUAL, _X32, 5, 0),
        _instruction(_JUMP_IF_EQUAL, _IO_URING_SETUP, 4, 0),
        _instruction(_JUMP_IF_EQUAL, machine.socket, 0, 2),
        _instruction(_LOAD, _FIRST_ARGUMENT),
        _instruction(_JUMP_IF_EQUAL, socket.AF_UNIX, 1, 0),
        _instruction(_RETURN, _ALLOW),
        _instruction(_RETURN, _ERRNO | errno.EACCES),
    ]


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
