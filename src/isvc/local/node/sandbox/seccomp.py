"""A filter of system calls that takes from a process and its children what Landlock does not look at.

Unix sockets: some are ways out of any confinement, since Docker's runs anything as root, D-Bus starts programs outside,
an ssh-agent lends keys. Pairs stay, but for those of datagrams, each end of which can send to any socket. Other ways to
a port than TCP's `connect`: Multipath TCP, which falls back to TCP, Fast Open, which connects when it sends, and other
families of sockets. Keys that the kernel keeps for the user; limits and priorities of the user's other processes. New
namespaces, as whose root a process would reach what the kernel keeps from users.
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
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_JUMP_IF_EQUAL, _JUMP_IF_GREATER_OR_EQUAL, _JUMP_IF_ANY_BIT = 0x15, 0x35, 0x45
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in seccomp_data, little-endian
_ARGUMENTS: Final = (16, 24, 32, 40)
_KIND: Final = 0xF  # of a socket's type, whose other bits are flags
_X32: Final = 0x40000000  # a second set of numbers on x86_64
_IO_URING_SETUP: Final = 425  # would open sockets without a system call for each
_FAST_OPEN: Final = 0x20000000  # a flag of what sends
_NETLINK_ROUTE: Final = 0  # addresses and interfaces; others tell of all sockets, or of devices
_NAMESPACES: Final = 0x7E020080  # flags: mounts, control groups, names, IPC, users, processes, network, time
_EXIT_SIGNAL: Final = 0xFF  # of these flags where a process is cloned, which has no namespace of time
_CLONE3: Final = 435  # whose flags are in memory, where no filter looks: libraries clone without it, if there is none
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class _Machine(NamedTuple):
    """The numbers of an architecture and of its system calls."""

    architecture: int
    socket: int
    socketpair: int
    sendto: int
    sendmsg: int
    sendmmsg: int
    setpriority: int
    clone: int
    unshare: int
    setns: int
    keys: tuple[int, ...]
    about_a_process: tuple[int, ...]  # which the first argument names: prlimit64, and what sets its scheduling


_MACHINES: Final = {
    "x86_64": _Machine(0xC000003E, 41, 53, 44, 46, 307, 141, 56, 272, 308, (248, 249, 250), (302, 142, 144, 314)),
    "aarch64": _Machine(0xC00000B7, 198, 199, 206, 211, 269, 140, 220, 97, 268, (217, 218, 219), (261, 118, 119, 274)),
}


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
    allow, deny = _instruction(_RETURN, _ALLOW), _instruction(_RETURN, _ERRNO | errno.EACCES)

    def of_call(number: int, *instructions: bytes) -> list[bytes]:
        return [_instruction(_JUMP_IF_EQUAL, number, 0, len(instructions)), *instructions]

    def of_itself(*arguments: int) -> list[bytes]:
        """Returns what lets a call be whose arguments are 0 there."""
        rest = [allow, deny]
        for each in reversed(arguments):
            rest = [_instruction(_LOAD, _ARGUMENTS[each]), _instruction(_JUMP_IF_EQUAL, 0, 0, len(rest) - 1), *rest]
        return rest

    def without(flags: int, number: int, argument: int) -> list[bytes]:
        any_of_them = _instruction(_JUMP_IF_ANY_BIT, flags, 0, 1)
        return of_call(number, _instruction(_LOAD, _ARGUMENTS[argument]), any_of_them, deny, allow)

    return [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_JUMP_IF_EQUAL, machine.architecture, 1, 0),
        deny,
        _instruction(_LOAD, _NUMBER),
        _instruction(_JUMP_IF_GREATER_OR_EQUAL, _X32, 0, 1),
        deny,
        *(each for number in (_IO_URING_SETUP, machine.setns, *machine.keys) for each in of_call(number, deny)),
        *(each for number in machine.about_a_process for each in of_call(number, *of_itself(0))),
        *of_call(machine.setpriority, *of_itself(0, 1)),  # of one process, and that is this one
        *of_call(machine.socket, *_known_protocols(allow, deny)),
        *of_call(machine.socketpair, *_connected_pairs(allow, deny)),
        *without(_FAST_OPEN, machine.sendto, 3),
        *without(_FAST_OPEN, machine.sendmsg, 2),
        *without(_FAST_OPEN, machine.sendmmsg, 3),
        *without(_NAMESPACES, machine.unshare, 0),
        *without(_NAMESPACES & ~_EXIT_SIGNAL, machine.clone, 0),
        *of_call(_CLONE3, _instruction(_RETURN, _ERRNO | errno.ENOSYS)),
        allow,
    ]


def _known_protocols(allow: bytes, deny: bytes) -> list[bytes]:
    """Returns what leaves sockets of the internet up to the number of UDP, and those that tell of its interfaces."""
    return [
        _instruction(_LOAD, _ARGUMENTS[0]),
        _instruction(_JUMP_IF_EQUAL, socket.AF_NETLINK, 2, 0),
        _instruction(_JUMP_IF_EQUAL, socket.AF_INET, 3, 0),
        _instruction(_JUMP_IF_EQUAL, socket.AF_INET6, 2, 5),
        _instruction(_LOAD, _ARGUMENTS[2]),
        _instruction(_JUMP_IF_EQUAL, _NETLINK_ROUTE, 2, 3),
        _instruction(_LOAD, _ARGUMENTS[2]),
        _instruction(_JUMP_IF_GREATER_OR_EQUAL, socket.IPPROTO_UDP + 1, 1, 0),
        allow,
        deny,
    ]


def _connected_pairs(allow: bytes, deny: bytes) -> list[bytes]:
    return [
        _instruction(_LOAD, _ARGUMENTS[1]),
        _instruction(_AND, _KIND),
        _instruction(_JUMP_IF_EQUAL, socket.SOCK_STREAM, 1, 0),
        _instruction(_JUMP_IF_EQUAL, socket.SOCK_SEQPACKET, 0, 1),
        allow,
        deny,
    ]


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
