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


class _Saver(SqliteSaver):
    """Goes on without keeping anything when the disk is full: a repair is worth more than its checkpoints."""

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        try:
            return super().put(config, checkpoint, metadata, new_versions)
        except sqlite3.Error as error:
            log.warning("a checkpoint was not kept: %s", error)
            return {"configurable": {**config["configurable"], "checkpoint_id": checkpoint["id"]}}

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        with contextlib.suppress(sqlite3.Error):  # `put` has said so
            super().put_writes(config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        with contextlib.suppress(sqlite3.Error):
            super().delete_thread(thread_id)


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
        yield _Saver(connection)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False, timeout=30)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        SqliteSaver(connection).setup()
    except BaseException:
        connection.close()
        raise
    return connection
