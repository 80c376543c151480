"""`Study`: a grid of cells and the number of runs of each, read from TOML and checked.

Errors name file, line and key, and the keys or values that are allowed:

>>> Study.from_text("name = 'mine'\\nupdate = 100", source="mine.toml")
Traceback (most recent call last):
    ...
walklearn.studies.options.StudyError: mine.toml, line 2: update is not a key of a study; did you
mean updates? Allowed: name, question, ...
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from walklearn.checks import is_number
from walklearn.files.checked_table import CheckedTable
from walklearn.privacy import InfeasiblePrivacyError
from walklearn.simulation.averaging import GossipSetting
from walklearn.simulation.trace_files import ERRORS
from walklearn.studies.cell import Cell, digest
from walklearn.studies.claims import Claim, read_claims
from walklearn.studies.figure_options import View, read_view
from walklearn.studies.import_paths import import_paths_of
from walklearn.studies.instances import DATA, GRAPH, RUN, draw_problem, one_thread, stream
from walklearn.studies.methods import CELL_KEYS, STEPS, finds_step, method_of, tokens_of, update_of
from walklearn.studies.options import StudyError, Table, graph_of
from walklearn.updates import ConstantStep
from walklearn.visit import Setting
from walklearn.walks import Walk

_GRIDS = ("graphs", "problems", "step_sizes", "methods")
_KEYS = (
    "name", "question", "seed", "instances", "replicates", "updates", "records", "metric", "gaps",
    "facts", "quick", *_GRIDS, "claims", "figure",
)  # fmt: skip
_RUN_KEYS = ("seed", "instances", "replicates", "updates", "records", "facts")
_QUICK = ("instances", "replicates", "updates", "records", "tuning_instances")
TUNING_INSTANCES = 10


@dataclass(frozen=True)
class Study:
    """A grid of graphs × problems × methods × step sizes, and the number of runs of each cell.

    Parameters
    ----------
    name
        Name of the study and of the directory of its results.
    question
        Question of the study, in a sentence.
    seed
        Seed of all random numbers.
    instances
        Number of instances, each a draw of graph and data; all methods use the same ones.
    replicates
        Number of runs of a method on each instance.
    updates
        Number of updates of a walk.
    records
        Number of records, log-spaced over the updates.
    metric
        Error that figures show at first, and for which step sizes are tuned.
    facts
        True to compute the constants of the theorems, too.
    graphs, problems, methods, step_sizes
        Tables of settings by name.
    gaps
        For gossip: number of nodes, evenly spaced, over which gaps are averaged; None for all.
    claims
        Claims to be judged.
    view
        First figure of the report.
    text
        Text of the file.
    quick_changes
        Changes made by `quick`.
    is_quick
        True if `quick` was applied.
    """

    name: str
    question: str
    seed: int
    instances: int
    replicates: int
    updates: int
    records: int
    metric: str
    facts: bool
    graphs: Mapping[str, Table]
    problems: Mapping[str, Table]
    methods: Mapping[str, Table]
    step_sizes: Mapping[str, Table]
    gaps: int | None = None
    claims: tuple[Claim, ...] = ()
    view: View = field(default_factory=View)
    text: str = field(default="", repr=False)
    quick_changes: Table = field(default_factory=dict, repr=False)
    is_quick: bool = False

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Study:
        """Read and check a TOML file; a `StudyError` has the key and line of a mistake."""
        return cls._of_table(CheckedTable.read(path, StudyError), check=True)

    @classmethod
    def from_text(cls, text: str, source: str = "the study", *, check: bool = True) -> Study:
        """Read a TOML text; a `StudyError` has the key and line of a mistake, and the source.

        check: build every graph, problem and method once, to find all mistakes.
        """
        return cls._of_table(CheckedTable.parse(text, source, StudyError), check)

    @classmethod
    def _of_table(cls, table: CheckedTable, check: bool) -> Study:
        study = cls(**_settings(table))
        if check:
            with one_thread():
                _check_parts(study, table)
        return study

    @property
    def hash(self) -> str:
        """Hash of the text and of `is_quick`; part of the provenance of verdicts."""
        return digest(self.text, self.is_quick)

    def cells(self) -> list[Cell]:
        """The cells: one for each graph, problem, step size and method, in this order."""
        return [
            self._cell(graph, problem, method, step_size)
            for graph, problem, step_size, method in product(
                self.graphs, self.problems, self.step_sizes, self.methods
            )
            if _runs_on(self.methods[method], graph, problem, step_size)
        ]

    def quick(self) -> Study:
        """Return the study with the changes of its `quick` table."""
        if not self.quick_changes:
            raise StudyError(
                f"{self.name} has no quick version. Add a line such as "
                "quick = { instances = 20, updates = 1000 }"
            )
        changes = dict(self.quick_changes)
        tuning = {key: changes.pop(key) for key in ("tuning_instances",) if key in changes}

        def with_tuning(steps: Table) -> Table:
            return {**steps, **tuning} if "constants" in steps else steps

        return replace(
            self,
            **changes,
            step_sizes={name: with_tuning(table) for name, table in self.step_sizes.items()},
            methods={
                name: {**table, STEPS: with_tuning(table[STEPS])} if STEPS in table else table
                for name, table in self.methods.items()
            },
            is_quick=True,
        )

    def _cell(self, graph: str, problem: str, method: str, step_size: str) -> Cell:
        table = self.methods[method]
        steps: Table = table.get(STEPS, self.step_sizes[step_size])
        if STEPS not in table and finds_step(table):
            steps = {"found": True}
        if "constants" in steps:
            steps = {"tuning_instances": TUNING_INSTANCES, "metric": self.metric, **steps}
        settings = {key: each for key, each in table.items() if key not in (*CELL_KEYS, STEPS)}
        import_paths = import_paths_of(self.graphs[graph], self.problems[problem], settings)
        optional = {"gaps": self.gaps, "import_paths": import_paths}
        return Cell.of(
            (self.name, graph, problem, method, step_size),
            {
                "graph": self.graphs[graph],
                "problem": self.problems[problem],
                "method": settings,
                "step_size": dict(steps),
                **{name: getattr(self, name) for name in _RUN_KEYS},
                **{key: value for key, value in optional.items() if value},
            },
        )


def _settings(study: CheckedTable) -> dict[str, Any]:
    """Read the arguments of `Study`, with their defaults."""
    study.only(_KEYS, "a study")
    quick = study.table("quick", CheckedTable({}))
    quick.only(_QUICK, "quick")
    return {
        "name": study.name("name"),
        "question": study.text("question", ""),
        "seed": study.count("seed", 1, minimum=0, maximum=2**128),
        "instances": study.count("instances", 100),
        "replicates": study.count("replicates", 1),
        "updates": study.count("updates"),
        "records": study.count("records", 60),
        "gaps": study.count("gaps", None),
        "facts": study.flag("facts", False),
        "metric": study.choice("metric", ERRORS, "average_gap"),
        "quick_changes": {key: quick.count(key) for key in quick},
        **{grid: _grid(study, grid) for grid in _GRIDS},
        "claims": read_claims(study),
        "view": read_view(study),
        "text": study.source.text,
    }


def _grid(study: CheckedTable, grid: str) -> dict[str, Any]:
    """Read the tables of one axis of the grid; `_check_parts` checks most of their content."""
    tables = study.table(grid)
    if not tables:
        raise study.error(grid, f"must have at least one table, such as [{grid}.mine].")
    for table in map(tables.table, tables):
        if grid == "step_sizes":
            _check_steps(table)
        if grid == "methods":
            for key in CELL_KEYS:
                table.names(key, study.get(key, ()), None)
            if STEPS in table:
                _check_steps(table.table(STEPS))
    return dict(tables)


def _check_steps(table: CheckedTable) -> None:
    if not table.keys() & {"constant", "constants"}:
        raise table.error("", "needs constant, or constants to choose from.")
    tuning = ("constants", "tuning_instances", "tuning_updates", "metric")
    keys = tuning if "constants" in table else ("constant",)
    exponent = "exponents" if "exponents" in table and "constants" in table else "exponent"
    table.only((*keys, exponent, "relative"), "a step size")
    table.number("exponent", 0.75, minimum=0.0)
    table.flag("relative", False)
    table.number("constant", None, above=0.0)
    table.count("tuning_instances", None)
    table.count("tuning_updates", None)
    table.choice("metric", ERRORS, None)
    for key in ("constants", "exponents"):
        table.value(key, None, fits=_increases, wanted="a list of positive numbers that increase")


def _increases(values: Any) -> bool:
    numbers = isinstance(values, list) and values and all(map(is_number, values))
    return bool(numbers) and values[0] > 0 and values == sorted(set(values))


def _runs_on(method: Table, graph: str, problem: str, step_size: str) -> bool:
    names = (graph, problem, step_size)
    return all(name in method.get(key, [name]) for key, name in zip(CELL_KEYS, names, strict=True))


def _check_parts(study: Study, table: CheckedTable) -> None:
    """Make each graph, problem and method once, for instance 0; errors name their lines."""
    graphs, problems, methods = (table.table(key) for key in ("graphs", "problems", "methods"))
    for graph, problem in product(study.graphs, study.problems):
        with (settings := graphs.table(graph)).name_errors():
            drawn = graph_of(settings, stream(study.seed, RUN, 0, GRAPH))
        with (settings := problems.table(problem)).name_errors(note=f" (with graph {graph})"):
            objective = draw_problem(settings, drawn, stream(study.seed, RUN, 0, DATA))
        for method in map(methods.table, study.methods):
            if not any(_runs_on(method, graph, problem, steps) for steps in study.step_sizes):
                continue
            with method.name_errors(note=f" (with problem {problem})"):
                try:
                    made = method_of(method, study.problems[problem], objective)
                except InfeasiblePrivacyError as error:
                    if method.get("infeasible") == "skip":
                        continue
                    hint = 'Or set infeasible = "skip" to skip the method.'
                    raise method.error("epsilon", f"{error} {hint}") from error
                update = update_of(method, None if finds_step(method) else ConstantStep(1.0))
                if isinstance(made, Walk):  # raises an error if the parts do not fit
                    Setting(objective, made, update, tokens=tokens_of(method))
                else:
                    GossipSetting(objective, drawn, made, update)
