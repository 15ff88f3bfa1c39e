"""The system calls that code under test has no business with, as a BPF program. Standard library only.

Allow by default: test suites use an open-ended set of calls. What is refused is what reaches out of the
namespaces or into other processes, or a large kernel surface no test needs. Refusals are errors, not signals, so
that libraries fall back as they do on old kernels. Numbers are of the kernel's `unistd_64.h` and
`asm-generic/unistd.h`; the program format is `struct sock_filter` of linux/filter.h.
"""

from __future__ import annotations

import errno
import functools
import platform
import struct

__all__ = ["ARCHITECTURES", "build_filter", "program_for_this_machine"]

_CHOSEN = (
    # name, x86-64, aarch64 (None: does not exist there)
    ("ptrace", 101, 117),
    ("process_vm_readv", 310, 270),
    ("process_vm_writev", 311, 271),
    ("process_madvise", 440, 440),
    ("pidfd_getfd", 438, 438),
    ("kcmp", 312, 272),
    ("io_uring_setup", 425, 425),  # makes sockets without socket()
    ("io_uring_enter", 426, 426),
    ("io_uring_register", 427, 427),
    ("bpf", 321, 280),
    ("perf_event_open", 298, 241),
    ("userfaultfd", 323, 282),
    ("add_key", 248, 217),
    ("request_key", 249, 218),
    ("keyctl", 250, 219),
    ("mount", 165, 40),
    ("umount2", 166, 39),
    ("pivot_root", 155, 41),
    ("chroot", 161, 51),
    ("open_tree", 428, 428),
    ("move_mount", 429, 429),
    ("fsopen", 430, 430),
    ("fsconfig", 431, 431),
    ("fsmount", 432, 432),
    ("fspick", 433, 433),
    ("mount_setattr", 442, 442),
    ("open_tree_attr", 467, 467),
    ("setns", 308, 268),
    ("unshare", 272, 97),
    ("open_by_handle_at", 304, 265),
    ("init_module", 175, 105),
    ("finit_module", 313, 273),
    ("delete_module", 176, 106),
    ("kexec_load", 246, 104),
    ("kexec_file_load", 320, 294),
    ("reboot", 169, 142),
    ("swapon", 167, 224),
    ("swapoff", 168, 225),
    ("acct", 163, 89),
    ("quotactl", 179, 60),
    ("quotactl_fd", 443, 443),
    ("syslog", 103, 116),
    ("vhangup", 153, 58),
    ("lookup_dcookie", 212, 18),
    ("uselib", 134, None),
    ("ustat", 136, None),
    ("iopl", 172, None),
    ("ioperm", 173, None),
    ("modify_ldt", 154, None),
)

#: machine → (AUDIT_ARCH constant, column of `_CHOSEN`, clone, clone3, socket, ioctl)
ARCHITECTURES: dict[str, tuple[int, int, int, int, int, int]] = {
    "x86_64": (0xC000003E, 1, 56, 435, 41, 16),
    "aarch64": (0xC00000B7, 2, 220, 435, 198, 29),
}

#: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_NAMESPACE_FLAGS = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_SOCKET_FAMILIES = (1, 2, 10, 16)  #: UNIX, INET, INET6, NETLINK; AF_VSOCK has no namespace and would get out
_TERMINAL_REQUESTS = (0x5412, 0x541C)  #: TIOCSTI, TIOCLINUX: input forged into a terminal
_X32_BIT = 0x40000000

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_JUMP_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_KILL_PROCESS = 0x80000000
_OFFSET_NUMBER, _OFFSET_ARCH, _OFFSET_ARGUMENTS = 0, 4, 16  # struct seccomp_data, little endian


def _instruction(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, operand)


def _refuse(number: int) -> bytes:
    return _instruction(_RETURN, _ERRNO | number)


def _argument_low(index: int) -> bytes:
    return _instruction(_LOAD, _OFFSET_ARGUMENTS + 8 * index)


def _when_number(number: int, block: bytes) -> bytes:
    """Run `block`, which must end in returns, for this system call only."""
    return _instruction(_JUMP_EQUAL, number, 0, len(block) // 8) + block


def build_filter(machine: str) -> bytes:
    """The program for `machine` as packed `struct sock_filter`s; KeyError for an unknown one."""
    audit_arch, column, clone, clone3, socket, ioctl = ARCHITECTURES[machine]
    program = [
        _instruction(_LOAD, _OFFSET_ARCH),
        _instruction(_JUMP_EQUAL, audit_arch, 1, 0),
        _instruction(_RETURN, _KILL_PROCESS),
        _instruction(_LOAD, _OFFSET_NUMBER),
    ]
    if machine == "x86_64":
        program.append(_instruction(_JUMP_AT_LEAST, _X32_BIT, 0, 1))
        program.append(_refuse(errno.ENOSYS))

    # The flags of clone3 lie behind a pointer that BPF cannot follow; glibc falls back to clone on ENOSYS.
    program.append(_when_number(clone3, _refuse(errno.ENOSYS)))
    spaces = (
        _argument_low(0)
        + _instruction(_JUMP_ANY_BIT, _NAMESPACE_FLAGS, 0, 1)
        + _refuse(errno.EPERM)
        + _instruction(_RETURN, _ALLOW)
    )
    program.append(_when_number(clone, spaces))
    families = _argument_low(0)
    for position, family in enumerate(_SOCKET_FAMILIES):
        families += _instruction(_JUMP_EQUAL, family, len(_SOCKET_FAMILIES) - position, 0)
    program.append(
        _when_number(socket, families + _refuse(errno.EAFNOSUPPORT) + _instruction(_RETURN, _ALLOW))
    )
    requests = _argument_low(1)
    for position, request in enumerate(_TERMINAL_REQUESTS):
        requests += _instruction(_JUMP_EQUAL, request, len(_TERMINAL_REQUESTS) - position, 0)
    program.append(_when_number(ioctl, requests + _instruction(_RETURN, _ALLOW) + _refuse(errno.EPERM)))

    numbers = (row[column] for row in _CHOSEN)
    program += (_when_number(number, _refuse(errno.EPERM)) for number in numbers if isinstance(number, int))
    program.append(_instruction(_RETURN, _ALLOW))
    return b"".join(program)


@functools.cache
def program_for_this_machine() -> bytes:
    """The program of the running kernel; raises `OSError` where none is known, since a filter is no option."""
    machine = platform.machine()
    if machine not in ARCHITECTURES or struct.calcsize("P") != 8:
        raise OSError(errno.ENOSYS, f"no system call filter for {machine}; known: {', '.join(ARCHITECTURES)}")
    return build_filter(machine)
