"""`Editable`: what a patch may touch, decided on the host before anything runs.

Judged against the tree as it was when the run began: a file that running code makes afterwards does not become
editable by being there. Every rule has an id and one reason; the first that speaks against a change is named.
A candidate that breaks one rule is refused whole, never trimmed.
"""

from __future__ import annotations

import io
import sys
import tokenize
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from pytest_autofix.patching.changes import FileChange
from pytest_autofix.patching.diff import changed_lines
from pytest_autofix.patching.listing import Listing, list_tree
from pytest_autofix.patching.names import fold_name, is_git_name, parents, unsafe_name
from pytest_autofix.patching.rules import (
    FEW_FILES,
    MAX_CHANGED_FILES,
    MAX_CHANGED_LINES,
    MAX_FILE_BYTES,
    OUTPUT_FOLDERS,
    RULES,
    STEERING_HIDDEN,
    WRITTEN_BY_RUNS,
    forbidden_name,
    is_conftest,
)
from pytest_autofix.patching.testcode import TEST_FOLDERS, Naming, Project, changed_inline_tests

__all__ = ["RULES", "Editable"]


@dataclass(frozen=True, slots=True)
class Editable:
    """The policy of one run; made once by `Editable.of`, before anything runs."""

    listing: Listing
    naming: Naming
    import_roots: tuple[str, ...]
    test_files: frozenset[str]  #: files that gave tests other than doctests
    test_folders: frozenset[str]  #: folders named by `testpaths` that are no packages
    plugins: dict[str, str] = field(default_factory=dict)  #: file → who loads it
    bases: dict[str, str] = field(default_factory=dict)  #: file → which test class inherits from it
    stubs: frozenset[str] = frozenset()  #: files with a stub to fill: need not be tracked
    new_files: bool = False

    @classmethod
    def of(
        cls,
        root: Path,
        *,
        python_files: Sequence[str] = Naming.files,
        python_classes: Sequence[str] = Naming.classes,
        python_functions: Sequence[str] = Naming.functions,
        testpaths: Sequence[str] = (),
        import_roots: Sequence[str] = (),
        plugins: Sequence[str] = (),
        test_files: Iterable[str] = (),
        stubs: Iterable[str] = (),
        new_files: bool = False,
    ) -> Editable:
        """Look at the tree below `root`. The patterns, `testpaths` and `-p` modules are pytest's own settings.

        `import_roots`: folders relative to root from which the project is imported (`pythonpath`), beside the
        root itself and `src`. `test_files`: files of the baseline's node ids, those that only gave doctests
        left out. `new_files`: whether new modules inside packages may be made; off by default.
        """
        listing = list_tree(root)
        naming = Naming(tuple(python_files), tuple(python_classes), tuple(python_functions))
        files = frozenset(listing.files())
        roots = tuple(dict.fromkeys(("", "src", *map(_folder, import_roots))))
        folders = frozenset(
            folder
            for folder in map(_folder, testpaths)
            if folder not in roots
            and listing.kinds.get(folder) == "folder"
            and f"{folder}/__init__.py" not in files
        )
        tests_only = cls(
            listing,
            naming,
            roots,
            frozenset(test_files),
            folders,
            stubs=frozenset(stubs),
            new_files=new_files,
        )
        tests = [path for path in sorted(files) if path.endswith(".py") and tests_only._test_rule(path)]
        project = Project(files, roots, lambda path: (root / path).read_bytes())
        return replace(
            tests_only, plugins=project.plugins(tests, plugins), bases=project.bases(tests, naming)
        )

    def allowed(self, change: FileChange) -> str:
        """Why this one change is refused, in one line that ends with the rule's id; empty if it may be made."""
        rule, detail = self._rule(change)
        if not rule:
            return ""
        return f"{_shown(change.path)}: {detail or RULES[rule]} [{rule}]"

    def refusals(self, changes: Sequence[FileChange]) -> tuple[str, ...]:
        """Everything that speaks against a whole patch, limits included; empty if it may be made."""
        found = [reason for change in changes if (reason := self.allowed(change))]
        if len({change.path for change in changes}) < len(changes):
            found.append(f"{RULES['twice']} [twice]")
        if len(changes) > MAX_CHANGED_FILES:
            found.append(f"{len(changes)} files changed: {RULES['too-many-files']} [too-many-files]")
        # Counted only where it can matter: comparing two texts of megabytes is work that nobody asked for.
        elif not found and (lines := sum(map(changed_lines, changes))) > MAX_CHANGED_LINES:
            found.append(f"{lines} lines changed: {RULES['too-many-lines']} [too-many-lines]")
        return tuple(found)

    def editable_files(self) -> tuple[str, ...]:
        """The existing files that may be changed, sorted."""
        return tuple(sorted(path for path in self.listing.files() if not self._path_rule(path)[0]))

    def why_not(self, path: str) -> str:
        """Why an existing file may not be changed, empty if it may."""
        rule, detail = self._path_rule(path)
        return f"{_shown(path)}: {detail or RULES[rule]} [{rule}]" if rule else ""

    def protected_files(self) -> tuple[str, ...]:
        """Files and folders that must stay as they are while candidates run; folders stand for all below them.

        Left out is what a test run may have to write itself: untracked files outside test folders, hidden files.
        """
        editable = set(self.editable_files())
        holds_source = {parent for path in editable for parent in parents(path)}
        wanted: dict[str, list[str]] = {}
        whole: set[str] = set()
        for path in self.listing.files():
            if path in editable or not self._is_worth_protecting(path):
                continue
            top = next((folder for folder in parents(path) if folder not in holds_source), "")
            if top:
                wanted.setdefault(top, []).append(path)
                if self._is_test_folder(top):
                    whole.add(top)
            else:
                wanted.setdefault(path, []).append(path)
        found: set[str] = set()
        for top, paths in wanted.items():
            found.update((top,) if top in whole or len(paths) > FEW_FILES else paths)
        return tuple(sorted(found))

    def _rule(self, change: FileChange) -> tuple[str, str]:
        """Id of the first rule against a change, with a detail where the rule's own reason says too little."""
        path = change.path
        if reason := unsafe_name(path):
            return "name", reason
        if any(is_git_name(part) for part in path.split("/")):
            return "git", ""
        if parent := self.listing.linked_parent(path):
            return "link-parent", f"{parent} is a symbolic link"
        known = self.listing.kinds.get(path)
        if change.kind == "symlink" or known == "symlink":
            return "symlink", ""
        if change.deleted:
            return "deleted", ""
        if change.mode_changed or (change.created and change.mode_after != "100644"):
            return "mode", ""
        rule, detail = self._never(path)
        if rule:
            return rule, detail
        if known is None:
            rule, detail = self._new_rule(path)
        elif known != "file":
            return "name", f"a {known}, not a file"
        else:
            rule, detail = self._source_rule(path)
        if rule:
            return rule, detail
        return self._content_rule(change)

    def _path_rule(self, path: str) -> tuple[str, str]:
        if unsafe_name(path) or self.listing.kinds.get(path) != "file":
            return "name", ""
        if any(is_git_name(part) for part in path.split("/")):
            return "git", ""
        rule, detail = self._never(path)
        return (rule, detail) if rule else self._source_rule(path)

    def _never(self, path: str) -> tuple[str, str]:
        """Rules about places that hold whatever the options say."""
        if rule := forbidden_name(path):
            return rule, ""
        if self._below_environment(path):
            return "environment", ""
        if rule := self._test_rule(path):
            return rule, ""
        if path in self.plugins:
            return "test-plugin", f"the tests load it as a plugin ({self.plugins[path]})"
        if path in self.bases:
            return "test-base", f"{self.bases[path]} inherits from it"
        return ("", "") if path.endswith(".py") else ("not-python", "")

    def _test_rule(self, path: str) -> str:
        if is_conftest(path):
            return "conftest"
        if self._is_test_folder(path.rpartition("/")[0]):
            return "test-folder"
        return "test-file" if path in self.test_files or self.naming.is_file(path) else ""

    def _is_test_folder(self, folder: str) -> bool:
        return not TEST_FOLDERS.isdisjoint(fold_name(folder).split("/")) or any(
            folder == known or folder.startswith(f"{known}/") for known in self.test_folders
        )

    def _is_worth_protecting(self, path: str) -> bool:
        if self._test_rule(path):
            return True
        rule = forbidden_name(path)
        if rule in ("hidden", "environment"):
            return path in STEERING_HIDDEN
        if rule or path in self.plugins or path in self.bases:
            return True
        if self.listing.tracked is not None:
            return path in self.listing.tracked
        return not path.endswith(WRITTEN_BY_RUNS) and path.partition("/")[0] not in OUTPUT_FOLDERS

    def _below_environment(self, path: str) -> bool:
        return any(f"{parent}/pyvenv.cfg" in self.listing.kinds for parent in parents(path))

    def _twin(self, path: str) -> str:
        """Another name of the tree that folds to the same as `path` or one of its parents."""
        parts = path.split("/")
        for count in range(1, len(parts) + 1):
            name = "/".join(parts[:count])
            for other in self.listing.folded.get(fold_name(name), ()):
                if other != name:
                    return other
        return ""

    def _source_rule(self, path: str) -> tuple[str, str]:
        if path in self.stubs:
            return "", ""
        if self.listing.tracked is not None:
            return ("", "") if path in self.listing.tracked else ("untracked", "")
        return ("", "") if self._importable(path) else ("not-importable", "")

    def _importable(self, path: str) -> bool:
        """Whether the file is a top-level module or lies in a package, seen from a folder of the import path."""
        for root in self.import_roots:
            inside = path.removeprefix(f"{root}/") if root else path
            if root and inside == path:
                continue
            *folders, name = inside.split("/")
            if not all(part.isidentifier() for part in (*folders, name.removesuffix(".py"))):
                continue
            if not folders or root:
                return True
            if folders[0] not in OUTPUT_FOLDERS and f"{folders[0]}/__init__.py" in self.listing.kinds:
                return True
        return False

    def _new_rule(self, path: str) -> tuple[str, str]:
        """A file that is not there: refused, with the danger it would be where it is one."""
        if twin := self._twin(path):
            return "same-name", f"{twin} differs only in case or Unicode form"
        if hidden := self._shadowed(path):
            return "shadows", f"a new module of this name would hide {hidden}"
        if not self.new_files:
            return "new-file", ""
        folder, _, _ = path.rpartition("/")
        if not folder or f"{folder}/__init__.py" not in self.listing.kinds:
            return "new-file", "new modules are only made inside an existing package"
        return "", ""

    def _shadowed(self, path: str) -> str:
        """What importing finds no more, or otherwise, once there is a file at `path`."""
        for root in sorted(self.import_roots, key=len, reverse=True):
            inside = path.removeprefix(f"{root}/") if root else path
            if root and inside == path:
                continue
            parts = inside.removesuffix(".py").removesuffix("/__init__").split("/")
            stem = inside.removesuffix("/__init__.py").removesuffix(".py")
            for other in self.import_roots:
                place = f"{other}/{stem}" if other else stem
                for name in (f"{place}.py", f"{place}/__init__.py", place):
                    kind = self.listing.kinds.get(name)
                    if kind and name != path and not (name == place and kind != "folder"):
                        return name
            if len(parts) == 1:
                if parts[0] in sys.stdlib_module_names:
                    return f"the standard library's `{parts[0]}`"
                if installed := _installed(parts[0]):
                    return f"the installed `{parts[0]}` of {installed}"
            break
        return ""

    def _content_rule(self, change: FileChange) -> tuple[str, str]:
        before, after = change.before or b"", change.after or b""
        if len(after) > max(MAX_FILE_BYTES, len(before) + MAX_FILE_BYTES // 10):
            return "too-large", f"{len(after) // 1000} kB; {RULES['too-large']}"
        declared = _encoding(after)
        if not declared or b"\0" in after:
            return "encoding", "the new content is no text in the encoding it declares"
        if change.before is None:
            return ("", "") if declared == "utf-8" else ("encoding", "a new file is UTF-8")
        if declared != (_encoding(before) or "utf-8"):
            return (
                "encoding",
                f"the declared encoding changes from {_encoding(before) or 'nothing'} to {declared}",
            )
        if changed := changed_inline_tests(before, after, self.naming):
            return "inline-tests", f"{changed} is changed; {RULES['inline-tests']}"
        return "", ""


def _folder(name: str) -> str:
    """A folder of pytest's settings, relative to the root, `""` for the root itself."""
    return str(PurePosixPath(name)) if PurePosixPath(name) != PurePosixPath() else ""


def _encoding(content: bytes) -> str:
    """The declared encoding, empty if the content cannot be decoded by it."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        content.decode(encoding)
    except (SyntaxError, ValueError, LookupError):
        return ""
    return encoding


def _installed(module: str) -> str:
    """The distribution that brings a top-level module of this name, empty if none does."""
    from importlib.metadata import (
        packages_distributions,
    )  # reads every RECORD: only for a new top-level module

    return ", ".join(packages_distributions().get(module, ()))


def _shown(path: str, limit: int = 120) -> str:
    text = path if path.isprintable() else ascii(path)[1:-1]
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
