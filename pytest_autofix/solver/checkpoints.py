"""Where the state of every task is kept after each step: SQLite below the project's `.pytest_autofix/`."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

__all__ = ["open_checkpoints"]

log = logging.getLogger("pytest_autofix")


@contextlib.contextmanager
def open_checkpoints(folder: Path) -> Iterator[BaseCheckpointSaver[Any]]:
    """A saver that parallel tasks may share; closed at the end.

    A database that cannot be used is set aside, and the run goes on with a new one: what it held can be made again,
    a run that ends here cannot.
    """
    path = folder / "checkpoints.sqlite"
    try:
        connection = _connect(path)
    except sqlite3.DatabaseError as error:
        log.warning("%s cannot be used (%s): set aside", path, error)
        try:
            path.replace(path.with_suffix(".broken"))
            connection = _connect(path)
        except (OSError, sqlite3.DatabaseError) as again:
            log.warning("no checkpoints are kept: %s", again)
            yield InMemorySaver()
            return
    with contextlib.closing(connection):
        yield SqliteSaver(connection)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False, timeout=30)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        SqliteSaver(connection).setup()
    except BaseException:
        connection.close()
        raise
    return connection
