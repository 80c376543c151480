"""Use of the owner's record by `walklearn train`: charge a training, then read the total."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from walklearn.privacy import Ledger, RecordTotal
    from walklearn.privacy.accounting.owner_record import RowSet
    from walklearn.tables import Table


def charge_run(
    table: Table,
    node_column: str | None,
    ledger: Ledger,
    delta: float | None,
    resumes: bool,
    note: Callable[[str], None],
) -> RowSet | None:
    """Record a training before it draws anything; return the marks of its rows.

    All rows of the file are charged, also test rows. `node_column` is not part of a row's mark.
    Training with noise from a seed is not charged. If the training `resumes` a run that is recorded
    for exactly these rows, it is not charged again. An `OwnerRecordError` stops a private training;
    an unprotected one continues with a note, since it claims nothing.
    """
    from walklearn.privacy.accounting.owner_record import OwnerRecord, OwnerRecordError, Run
    from walklearn.tables.row_marks import table_blocks

    if ledger.has_seeded_noise:
        return None
    record = OwnerRecord()
    try:
        rows = record.mark(table_blocks(table, node_column))
        run = Run.of_ledger(ledger, f"train {Path(table.source).name}", delta)
        with record.locked() as locked_record:
            if not (resumes and locked_record.has(rows, run)):
                locked_record.add(rows, run)
    except OwnerRecordError as error:
        if ledger.unit is not None:
            raise
        note(f"This unprotected run was not recorded. {error}")
        return None
    return rows


def total_of_runs(
    rows: RowSet, delta: float | None, note: Callable[[str], None]
) -> RecordTotal | None:
    """Return the total over all runs on any of the rows.

    If the record became unreadable during the training, print a note; the model is still saved.
    """
    from walklearn.privacy.accounting.owner_record import OwnerRecord, OwnerRecordError

    try:
        return OwnerRecord().total_of(rows, delta)
    except OwnerRecordError as error:
        note(f"The total over all runs on these rows is unknown. {error}")
        return None
