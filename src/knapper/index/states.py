"""Tell states of the index apart, for all that is remembered of one."""

import sqlite3


class Connection(sqlite3.Connection):
    """Remember what stands for the state that a snapshot holds."""

    is_snapshot = False
    state: tuple[str, int] | None = None

    def hold(self) -> None:
        """Begin a snapshot."""
        self.execute("BEGIN")
        self.is_snapshot, self.state = True, None

    def let_go(self) -> None:
        """End it."""
        self.is_snapshot, self.state = False, None
        self.execute("ROLLBACK" if self.in_transaction else "SELECT 1")


def state_of(connection: sqlite3.Connection) -> tuple[str, int]:
    """Give what stands for the state that a connection sees: the index's own id, and the transactions written to it."""
    held = connection if isinstance(connection, Connection) and connection.is_snapshot else None
    if held is not None and held.state is not None:
        return held.state
    rows = dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('uid', 'generation')"))
    state = str(rows["uid"]), int(rows["generation"])
    if held is not None:
        held.state = state
    return state
