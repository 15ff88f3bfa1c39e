"""The system call filter, run by an interpreter of BPF: what it answers for calls that no kernel here has."""

from __future__ import annotations

import errno
import struct

import pytest

from pytest_autofix.sandbox.seccomp import ARCHITECTURES, build_filter

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def answer(machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    """Interpret the program for one call, as the kernel does."""
    audit = ARCHITECTURES[machine][0] if arch is None else arch
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, audit, 0, *padded)
    program = list(struct.iter_unpack("<HBBI", build_filter(machine)))
    position = accumulator = 0
    while True:
        code, if_true, if_false, operand = program[position]
        position += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif code == 0x06:
            return operand
        else:
            holds = {
                0x15: accumulator == operand,
                0x35: accumulator >= operand,
                0x45: bool(accumulator & operand),
            }
            position += if_true if holds[code] else if_false


NUMBERS = {
    # name: x86-64, aarch64
    "read": (0, 63), "clone": (56, 220), "clone3": (435, 435), "socket": (41, 198), "ioctl": (16, 29),
    "ptrace": (101, 117), "mount": (165, 40), "unshare": (272, 97), "setns": (308, 268), "bpf": (321, 280),
    "io_uring_setup": (425, 425), "keyctl": (250, 219), "process_vm_writev": (311, 271), "execve": (59, 221),
    "userfaultfd": (323, 282), "open_by_handle_at": (304, 265), "kexec_load": (246, 104), "fork": (57, 220),
}  # fmt: skip
SIGCHLD = 17


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        pytest.param("read", (), ALLOW, id="read"),
        pytest.param("execve", (), ALLOW, id="execve"),
        pytest.param("fork", (SIGCHLD,), ALLOW, id="fork"),
        pytest.param("clone", (0x3D0F00,), ALLOW, id="thread"),
        pytest.param("clone", (0x10000000 | SIGCHLD,), ERRNO | errno.EPERM, id="clone-user-namespace"),
        pytest.param("clone", (0x00020000 | SIGCHLD,), ERRNO | errno.EPERM, id="clone-mount-namespace"),
        pytest.param("clone3", (), ERRNO | errno.ENOSYS, id="clone3"),
        pytest.param("socket", (1, 1, 0), ALLOW, id="socket-unix"),
        pytest.param("socket", (2, 1, 0), ALLOW, id="socket-inet"),
        pytest.param("socket", (10, 1, 0), ALLOW, id="socket-inet6"),
        pytest.param("socket", (16, 3, 0), ALLOW, id="socket-netlink"),
        pytest.param("socket", (40, 1, 0), ERRNO | errno.EAFNOSUPPORT, id="socket-vsock"),
        pytest.param("socket", (17, 3, 0), ERRNO | errno.EAFNOSUPPORT, id="socket-packet"),
        pytest.param("ioctl", (0, 0x5412), ERRNO | errno.EPERM, id="ioctl-tiocsti"),
        pytest.param("ioctl", (0, 0x541C), ERRNO | errno.EPERM, id="ioctl-tioclinux"),
        pytest.param("ioctl", (0, 0x5413), ALLOW, id="ioctl-window-size"),
        *(
            pytest.param(name, (), ERRNO | errno.EPERM, id=name)
            for name in (
                "ptrace", "mount", "unshare", "setns", "bpf", "io_uring_setup", "keyctl", "process_vm_writev",
                "userfaultfd", "open_by_handle_at", "kexec_load",
            )
        ),
    ],
)  # fmt: skip
def test_answers(machine: str, name: str, arguments: tuple[int, ...], expected: int) -> None:
    assert answer(machine, NUMBERS[name][machine == "aarch64"], *arguments) == expected


def test_foreign_architecture_is_killed() -> None:
    assert answer("x86_64", 0, arch=0x40000003) == KILL  # i386: other numbers for the same calls
    assert answer("aarch64", 0, arch=0x40000028) == KILL


def test_x32_calls_do_not_exist() -> None:
    assert answer("x86_64", 0x40000000 | 101) == ERRNO | errno.ENOSYS
    assert answer("x86_64", -1) == ERRNO | errno.ENOSYS


def test_program_fits_the_kernel() -> None:
    for machine in ARCHITECTURES:
        program = build_filter(machine)
        assert len(program) % 8 == 0
        assert len(program) // 8 < 4096
