"""What of this machine a sandbox has to show so that the user's tests run as they do outside."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_autofix.errors import ConfigurationError
from pytest_autofix.sandbox.layout import HOME
from pytest_autofix.sandbox.protocol import Workspace

__all__ = ["build_workspace"]

_NO_PROJECT = frozenset(
    f"/{name}"
    for name in ("", "usr", "etc", "var", "opt", "home", "root", "tmp", "bin", "lib", "proc", "sys", "dev")
)
_SHOWN_ANYWAY = ("/usr", "/bin", "/lib", "/lib64", "/sbin")
_STORES = ("/nix/store", "/gnu/store", "/home/linuxbrew/.linuxbrew")  #: packages there need their neighbours
_PASSED = (
    "LANG",
    "LANGUAGE",
    "TZ",
    "PYTHONPATH",
    "PYTHONUTF8",
    "PYTHONHASHSEED",
    "LD_LIBRARY_PATH",
    "CONDA_PREFIX",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD",
    "PYTEST_PLUGINS",
)
_PASSED_PREFIXES = ("LC_",)
#: A thread for each core of the host would meet the limit of processes, and threads cannot be forked.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def build_workspace(
    root: Path,
    *,
    snapshot: Path,
    python: Path,
    sys_path: Sequence[str],
    protected: Sequence[str] = (),
    args: Sequence[str] = (),
    cwd: Path | None = None,
    pass_env: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Workspace:
    """Gather interpreter, import path and environment. `sys_path` is that of the user's pytest process.

    Raises `ConfigurationError` for a root whose copy would be a whole system or home.
    """
    environ = os.environ if environ is None else environ
    root = root.absolute()
    home = Path(environ.get("HOME") or Path.home())
    if str(root) in _NO_PROJECT or root == home or home.is_relative_to(root):
        raise ConfigurationError(
            f"{root} is no project folder: it would be copied and shown whole. Run pytest in the project,"
            " or give its folder with --rootdir."
        )
    wanted = [*_interpreter(python), *_imports(sys_path, root, home)]
    wanted += [Path(entry) for entry in environ.get("LD_LIBRARY_PATH", "").split(":") if entry]
    readable = dict.fromkeys(path for path in wanted if _worth_showing(path, root, home))
    return Workspace(
        root=root,
        snapshot=snapshot.absolute(),
        protected=tuple(dict.fromkeys(protected)),
        python=python.absolute(),
        sys_path=tuple(sys_path),
        readable=tuple(path for path in readable if not _covered(path, readable)),
        environment=_environment(python, environ, pass_env),
        pytest_args=tuple(args),
        working_directory=(cwd or root).absolute(),
    )


def _interpreter(python: Path) -> Iterator[Path]:
    """The prefixes of an interpreter: of every link on the way to it, and of the one a virtual environment names."""
    if python == Path(sys.executable):
        yield from (
            Path(sys.prefix),
            Path(sys.base_prefix),
            Path(sys.exec_prefix),
            Path(sys.base_exec_prefix),
        )
    current = python.absolute()
    for _ in range(32):
        folder = current.parent
        prefix = folder.parent if folder.name in ("bin", "Scripts") else folder
        yield from (prefix, prefix.resolve())
        configuration = prefix / "pyvenv.cfg"
        if configuration.is_file():
            for line in configuration.read_text(encoding="utf-8", errors="replace").splitlines():
                name, _, value = line.partition("=")
                if name.strip() == "home" and value.strip():
                    base = Path(value.strip()).parent
                    yield from (base, base.resolve())
        if not current.is_symlink():
            break
        current = Path(os.path.normpath(folder / current.readlink()))
    real = python.resolve()
    yield from (Path(store) for store in _STORES if real.is_relative_to(store))


def _imports(sys_path: Sequence[str], root: Path, home: Path) -> Iterator[Path]:
    """Folders and archives of the import path, and what editable installs point to by an import hook."""
    for entry in sys_path:
        path = Path(entry)
        if not entry or not path.is_absolute() or not path.exists() or not _worth_showing(path, root, home):
            continue
        if path.name not in ("site-packages", "dist-packages"):
            yield from _importable(path) if path.is_dir() else (path,)
        else:
            yield path
            for finder in sorted(path.glob("__editable__*finder.py")):
                yield from (target for target in _mapped(finder) if not target.is_relative_to(root))


def _importable(folder: Path) -> Iterator[Path]:
    """What can be imported from a folder of the import path. It may be a whole checkout (the current folder of
    `python -m pytest`, an editable install), whose history and secrets are nobody's business inside."""
    if (folder / "encodings").is_dir() or folder.name == "lib-dynload":
        yield folder  # the standard library
        return
    for entry in sorted(folder.iterdir()):
        metadata = entry.name.endswith((".dist-info", ".egg-info"))
        module = entry.suffix in (".py", ".so") and entry.name.partition(".")[0].isidentifier()
        if metadata or module or (entry.name.isidentifier() and entry.is_dir() and _is_package(entry)):
            yield entry


def _is_package(folder: Path) -> bool:
    """A namespace package need not hold modules itself."""
    if (folder / "pyvenv.cfg").exists():
        return False
    return any(folder.glob("*.py")) or any(folder.glob("*/__init__.py"))


def _mapped(finder: Path) -> Iterator[Path]:
    """Targets of setuptools' generated finder: `MAPPING: dict[str, str] = {...}` and NAMESPACES beside it."""
    try:
        tree = ast.parse(finder.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            try:
                value = ast.literal_eval(node.value)
            except ValueError:
                continue
            if node.target.id == "MAPPING" and isinstance(value, dict):
                for target in map(Path, value.values()):
                    yield target if target.exists() else target.with_suffix(".py")
            elif node.target.id == "NAMESPACES" and isinstance(value, dict):
                yield from (Path(path) for paths in value.values() for path in paths)


def _worth_showing(path: Path, root: Path, home: Path) -> bool:
    """Never a folder that holds the home folder, never what the system binds or the snapshot show already."""
    if not path.is_absolute() or not path.exists() or home.is_relative_to(path) or str(path) in _NO_PROJECT:
        return False
    if any(path.is_relative_to(shown) for shown in _SHOWN_ANYWAY):
        return False
    if path == root:
        return False
    if path.is_relative_to(root):
        return any((folder / "pyvenv.cfg").is_file() for folder in (path, *path.parents) if folder != root)
    return True


def _covered(path: Path, others: Mapping[Path, None]) -> bool:
    return any(path != other and path.is_relative_to(other) for other in others)


def _environment(python: Path, environ: Mapping[str, str], pass_env: Sequence[str]) -> dict[str, str]:
    """An allowlist: tokens and addresses of services that a shell carries must not be readable inside."""
    environment = {
        "PATH": f"{python.absolute().parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": HOME,
        "USER": "autofix",
        "LOGNAME": "autofix",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        **dict.fromkeys(_ONE_THREAD, "1"),
    }
    environment |= {
        name: value
        for name, value in environ.items()
        if name in _PASSED or name.startswith(_PASSED_PREFIXES) or name in pass_env
    }
    if (python.absolute().parent.parent / "pyvenv.cfg").is_file():
        environment["VIRTUAL_ENV"] = str(python.absolute().parent.parent)
    return environment
