"""Saved results of many small runs, to compare a rebuilt core with the code before.

    python -m tests.golden            compare; exit with 1 and a list of differences
    python -m tests.golden --write    save new results

Paths, visits, messages, bytes and ledgers must be equal, and models within 1e-10 of their largest
entry. `cases` defines the runs; `saved` reads, writes and compares. The files hold plain numbers
under the names of cases: a renamed class or argument changes a helper in `cases`, not the files.
"""
