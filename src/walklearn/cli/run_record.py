"""`walklearn train` and the owner's record: charge a training, then print the total."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from walklearn.privacy import Ledger, RecordTotal
    from walklearn.privacy.accounting.owner_record import RowSet
    from walklearn.tables import Table


class RunRecord:
    """The owner's record, as one training uses it.

    It is charged for all rows of the file, also for those that are kept back to test on. The column
    that names the node of a row states who owns it, so the row is also recognised without it.

    Parameters
    ----------
    table
        All rows of the file, as they were read for the training.
    node_column
        The column that names the node of a row, if that was given.
    delta
        δ of the training, if it has one.
    resumes
        True if the training continues an earlier one. Then it is charged unless the same run on
        exactly these rows is recorded.
    """

    def __init__(
        self,
        table: Table,
        node_column: str | None,
        delta: float | None,
        resumes: bool,
    ) -> None:
        self._table: Table | None = table
        self._name, self._node_column = f"train {Path(table.source).name}", node_column
        self._delta, self._resumes = delta, resumes
        self._rows: RowSet | None = None
        self.notes: list[str] = []

    def charge(self, ledger: Ledger) -> None:
        """Record the training before it draws anything; nothing if its noise comes from a seed.

        An `OwnerRecordError` stops a private training. An unprotected one continues with a note,
        since it claims nothing.
        """
        from walklearn.privacy.accounting.owner_record import (
            OwnerRecord,
            OwnerRecordError,
            Run,
        )
        from walklearn.tables.row_marks import table_blocks

        table, self._table = self._table, None  # the training needs the memory
        if table is None or ledger.has_seeded_noise:
            return
        record = OwnerRecord()
        try:
            rows = record.mark(table_blocks(table, self._node_column))
            run = Run.of_ledger(ledger, self._name, self._delta)
            with record.locked() as locked_record:
                if not (self._resumes and locked_record.has(rows, run)):
                    locked_record.add(rows, run)
        except OwnerRecordError as error:
            if ledger.unit is not None:
                raise
            self.notes.append(f"This unprotected run was not recorded. {error}")
            return
        self._rows = rows

    def total(self) -> RecordTotal | None:
        """Return the total over all runs on any of the rows; None if this one is not recorded.

        A record that became unreadable during the training costs a note, not the model.
        """
        from walklearn.privacy.accounting.owner_record import OwnerRecord, OwnerRecordError

        if self._rows is None:
            return None
        try:
            return OwnerRecord().total_of(self._rows, self._delta)
        except OwnerRecordError as error:
            self.notes.append(f"The total over all runs on these rows is not known. {error}")
            return None
