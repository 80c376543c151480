"""A study: what is compared, on what, how often. Read from TOML and checked before it is run.

Every error names the file, the line and the key, what is wrong and what is allowed:

>>> Study.from_text("name = 'mine'\\nupdate = 100", source="mine.toml")
Traceback (most recent call last):
    ...
walklearn.studies.options.StudyError: mine.toml, line 2: update is no key of a study; did you
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
from walklearn.studies.instances import DATA, GRAPH, RUN, draw_problem, one_thread, stream
from walklearn.studies.methods import STEPS, WHERE, finds_step, method_of, update_of
from walklearn.studies.options import StudyError, Table, graph_of
from walklearn.studies.origins import import_paths_of
from walklearn.updates import ConstantStep
from walklearn.visit import Setting
from walklearn.walks import Walk

_GRIDS = ("graphs", "problems", "step_sizes", "methods")
_KEYS = (
    "name", "question", "seed", "instances", "replicates", "updates", "records", "metric", "gaps",
    "facts", "quick", *_GRIDS, "claims", "figure",
)  # fmt: skip
_QUICK = ("instances", "replicates", "updates", "records", "tuning_instances")
TUNING_INSTANCES = 10


@dataclass(frozen=True)
class Study:
    """A grid of graphs × problems × methods × step sizes, and how often each cell is run.

    Parameters
    ----------
    name
        What the study is called; its results' directory too.
    question
        What it asks, in a sentence.
    seed
        The seed of everything drawn.
    instances
        How many draws of graph and data are made, the same for every method.
    replicates
        How many walks are made on each.
    updates
        How many updates a walk makes.
    records
        At how many numbers of updates, log-spaced, errors are recorded.
    metric
        The error that figures show first and that steps are tuned for.
    facts
        Whether theory is asked too.
    graphs
        The graphs by name, as tables of settings.
    problems
        The problems by name.
    methods
        The walks and gossip algorithms by name.
    step_sizes
        The step sizes by name.
    gaps
        How many nodes, spread evenly, gossip's gaps are averaged over; None for all.
    claims
        What is to be judged.
    view
        How the results are best looked at.
    text
        The file as it was written.
    quick_changes
        What `quick` changes.
    is_quick
        Whether `quick` has been applied.

    Examples
    --------
    >>> study = Study.from_text('''
    ... name = "one-walk"
    ... updates = 100
    ... [graphs.ring]
    ... family = "ring"
    ... nodes = 11
    ... [problems.gaussians]
    ... data = "two_gaussians"
    ... dimension = 2
    ... penalty = 1.0
    ... [methods.uniform]
    ... walk = "uniform"
    ... [step_sizes.printed]
    ... constant = 0.1
    ... exponent = 0.75
    ... ''')
    >>> study.updates, [cell.method for cell in study.cells()]
    (100, ['uniform'])
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
        """Read and check a study's file.

        Parameters
        ----------
        path
            A TOML file.

        Returns
        -------
        Study
            A `StudyError` is raised for what is wrong, with its key and line.
        """
        return cls._of_table(CheckedTable.read(path, StudyError), check=True)

    @classmethod
    def from_text(cls, text: str, source: str = "the study", *, check: bool = True) -> Study:
        """Read a study from a TOML text.

        Parameters
        ----------
        text
            The text, as a study's file has it.
        source
            What errors call the place that it came from.
        check
            Build every graph, problem and method once, to be sure of them.

        Returns
        -------
        Study
            A `StudyError` is raised for what is wrong, with its key and line.
        """
        return cls._of_table(CheckedTable.parse(text, source, StudyError), check)

    @classmethod
    def _of_table(cls, table: CheckedTable, check: bool) -> Study:
        study = cls(**_settings(table))
        if check:
            with one_thread():
                _build(study, table)
        return study

    @property
    def hash(self) -> str:
        """A digest of its text as it is run, which everything that follows from it carries."""
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
        """The same with the changes of its `quick` table."""
        if not self.quick_changes:
            raise StudyError(
                f"{self.name} says nothing of a quick run: give it a line such as "
                "quick = { instances = 20, updates = 1000 }"
            )
        changes = dict(self.quick_changes)
        tuning = changes.pop("tuning_instances", None)

        def with_fewer_tuning_instances(steps: Table) -> Table:
            is_tuned = "constants" in steps and tuning is not None
            return {**steps, "tuning_instances": tuning} if is_tuned else steps

        return replace(
            self,
            **changes,
            step_sizes={
                name: with_fewer_tuning_instances(table) for name, table in self.step_sizes.items()
            },
            methods={
                name: {**table, STEPS: with_fewer_tuning_instances(table[STEPS])}
                if STEPS in table
                else table
                for name, table in self.methods.items()
            },
            is_quick=True,
        )

    def _cell(self, graph: str, problem: str, method: str, step_size: str) -> Cell:
        table, steps = self.methods[method], dict(self.step_sizes[step_size])
        if STEPS in table:
            steps = dict(table[STEPS])
        elif finds_step(table):
            steps = {"found": True}
        if "constants" in steps:
            steps = {"tuning_instances": TUNING_INSTANCES, "metric": self.metric, **steps}
        described = {key: each for key, each in table.items() if key not in (*WHERE, STEPS)}
        import_paths = import_paths_of(self.graphs[graph], self.problems[problem], described)
        return Cell.of(
            (self.name, graph, problem, method, step_size),
            {
                "graph": self.graphs[graph],
                "problem": self.problems[problem],
                "method": described,
                "step_size": steps,
                "seed": self.seed,
                "instances": self.instances,
                "replicates": self.replicates,
                "updates": self.updates,
                "records": self.records,
                "facts": self.facts,
                **({"gaps": self.gaps} if self.gaps else {}),
                **({"import_paths": import_paths} if import_paths else {}),
            },
        )


def _settings(study: CheckedTable) -> dict[str, Any]:
    """Read what `Study` is made from, with the defaults; an error names its line."""
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
    """The tables of a grid as they are; what is in graphs, problems and methods is left to who
    makes them."""
    tables = study.table(grid)
    if not tables:
        raise study.error(grid, f"must have at least one table, such as [{grid}.mine].")
    for table in map(tables.table, tables):
        if grid == "step_sizes":
            _check_steps(table)
        if grid == "methods":
            for key in WHERE:
                table.names(key, study.get(key, ()), None)
            if STEPS in table:
                _check_steps(table.table(STEPS))
    return dict(tables)


def _check_steps(table: CheckedTable) -> None:
    if not table.keys() & {"constant", "constants"}:
        raise table.error("", "needs constant, or constants to be tuned over.")
    tuned = "constants" in table
    own = ("constants", "tuning_instances", "tuning_updates", "metric") if tuned else ("constant",)
    table.only((*own, "exponent", "relative"), "a step size")
    table.number("exponent", 0.75, minimum=0.0)
    table.flag("relative", False)
    table.number("constant", None, above=0.0)
    table.count("tuning_instances", None)
    table.count("tuning_updates", None)
    table.choice("metric", ERRORS, None)
    table.value(
        "constants", None, fits=_increases,
        wanted="a list of positive numbers that increase, so that its ends can be told",
    )  # fmt: skip


def _increases(values: Any) -> bool:
    numbers = isinstance(values, list) and values and all(map(is_number, values))
    return bool(numbers) and values[0] > 0 and values == sorted(set(values))


def _runs_on(method: Table, graph: str, problem: str, step_size: str) -> bool:
    names = (graph, problem, step_size)
    return all(name in method.get(key, [name]) for key, name in zip(WHERE, names, strict=True))


def _build(study: Study, table: CheckedTable) -> None:
    """Make everything once, for instance 0: what cannot be made is said with its line."""
    graphs, problems, methods = (table.table(key) for key in ("graphs", "problems", "methods"))
    for graph, problem in product(study.graphs, study.problems):
        with (described := graphs.table(graph)).explained():
            drawn = graph_of(described, stream(study.seed, RUN, 0, GRAPH))
        with (described := problems.table(problem)).explained(note=f" (with graph {graph})"):
            posed = draw_problem(described, drawn, stream(study.seed, RUN, 0, DATA))
        for method in map(methods.table, study.methods):
            if not any(_runs_on(method, graph, problem, steps) for steps in study.step_sizes):
                continue
            with method.explained(note=f" (with problem {problem})"):
                try:
                    made = method_of(method, study.problems[problem], posed)
                    any_step = None if finds_step(method) else ConstantStep(1.0)
                    update = update_of(method, any_step)
                    if isinstance(made, Walk):
                        Setting(posed, made, update)  # raises an error if the parts do not fit
                    else:
                        GossipSetting(posed, drawn, made, update)
                except InfeasiblePrivacyError as error:
                    if method.get("infeasible") != "skip":
                        hint = 'Or say infeasible = "skip" to record that it is.'
                        raise method.error("epsilon", f"{error} {hint}") from error
