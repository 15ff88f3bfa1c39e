"""Prompts as versioned files: `NAME.md` with name and version on top, hashes of all versions in `versions.json`.

Filled in by `string.Template`, which cannot run anything and does not look at the texts it puts in.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from string import Template
from typing import Literal

__all__ = ["Prompt", "fence", "load_prompt", "prompt_names", "recorded_hashes"]

_HEAD = re.compile(
    r"\A---\nname: (?P<name>[a-z-]+)\nversion: (?P<version>\d+)\n---\n(?P<body>.*)\Z", re.DOTALL
)
_PART = re.compile(r"^=== (system|user) ===\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt file."""

    name: str
    version: int
    body: str

    @property
    def label(self) -> str:
        """Name and version as they stand in reports: `repair@1`."""
        return f"{self.name}@{self.version}"

    @property
    def hash(self) -> str:
        """16 hexadecimal digits of the text."""
        return hashlib.sha256(self.body.encode()).hexdigest()[:16]

    def render(self, **values: str) -> list[tuple[Literal["system", "user"], str]]:
        """The messages, with every `$name` replaced; raises `KeyError` for a name without a value."""
        pieces = _PART.split(self.body)[1:]
        messages: list[tuple[Literal["system", "user"], str]] = []
        for role, text in zip(pieces[::2], pieces[1::2], strict=True):
            content = Template(text.strip()).substitute(values)
            messages.append(("system" if role == "system" else "user", content))
        return messages


@lru_cache
def load_prompt(name: str) -> Prompt:
    """The prompt of that name; raises `ValueError` when its file has no proper head."""
    text = files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8")
    match = _HEAD.match(text)
    if match is None or match["name"] != name or not _PART.search(match["body"]):
        raise ValueError(f"prompt file {name}.md: no head with its name and version, or no part")
    return Prompt(name, int(match["version"]), match["body"])


def prompt_names() -> list[str]:
    """Names of all prompt files, sorted."""
    return sorted(entry.name[:-3] for entry in files(__package__).iterdir() if entry.name.endswith(".md"))


def recorded_hashes() -> dict[str, str]:
    """`name@version` → hash, of all versions there ever were."""
    recorded: dict[str, str] = json.loads(
        files(__package__).joinpath("versions.json").read_text(encoding="utf-8")
    )
    return recorded


def fence(text: str, language: str = "") -> str:
    """The text as a fenced block, the fence longer than any inside, so that data cannot close it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    mark = "`" * (longest + 1)
    return f"{mark}{language}\n{text.rstrip()}\n{mark}"
