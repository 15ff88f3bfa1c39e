"""The few Linux calls that Python 3.11 does not offer, through ctypes. Standard library only: it runs inside too."""

from __future__ import annotations

import ctypes
import os
import struct

__all__ = [
    "CLONE_NEWIPC",
    "CLONE_NEWNS",
    "CLONE_NEWPID",
    "MS_BIND",
    "MS_NODEV",
    "MS_NOEXEC",
    "MS_NOSUID",
    "MS_PRIVATE",
    "MS_RDONLY",
    "MS_REC",
    "MS_REMOUNT",
    "bind",
    "bind_read_only",
    "drop_all_capabilities",
    "install_filter",
    "mount",
    "set_dumpable",
    "unshare",
]

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000

_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)
_libc.prctl.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Give this process namespaces of its own (`os.unshare` came with Python 3.12)."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """mount(2); the error names the target."""
    result = _libc.mount(
        os.fsencode(source), os.fsencode(target), kind.encode() or None, flags, options.encode() or None
    )
    _check(result, f"mount {kind or 'bind'} on {target}")


def bind(source: str, target: str, *, recursive: bool = False) -> None:
    """Show `source` at `target`. A bind of something on a read-only mount is read-only as well."""
    mount(source, target, "", MS_BIND | (MS_REC if recursive else 0))


def bind_read_only(path: str, *, recursive: bool = False) -> None:
    """Make what is at `path` a mount of its own that cannot be written, renamed or removed."""
    bind(path, path, recursive=recursive)
    mount("none", path, "", MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)


def set_dumpable(dumpable: bool) -> None:
    """A process that is not dumpable keeps its memory and descriptors from others of the same user."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, int(dumpable), None, 0, 0), "PR_SET_DUMPABLE")


def drop_all_capabilities() -> None:
    """Empty every capability set, the bounding set included, and forbid to gain any by exec."""
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, None, 0, 0) != 0:
            if capability == 0:
                _check(-1, "PR_CAPBSET_DROP")
            break  # EINVAL: past the last capability this kernel knows
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, None, 0, 0)
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, None, 0, 0), "PR_SET_NO_NEW_PRIVS")
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), 8)
    nothing = ctypes.create_string_buffer(24)
    _check(_libc.capset(header, nothing), "capset")


def install_filter(program: bytes) -> None:
    """Install a seccomp filter, given as packed `struct sock_filter`s; needs no_new_privs."""
    instructions = ctypes.create_string_buffer(program, len(program))
    address = ctypes.addressof(instructions)
    # struct sock_fprog { unsigned short len; struct sock_filter *filter; }, padded by native alignment
    sock_fprog = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, address))
    result = _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(sock_fprog), 0, 0)
    _check(result, "PR_SET_SECCOMP")
