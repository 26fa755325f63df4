"""The result of an experiment, and how two of them compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, overload

from seatrial.errors import SeatrialError
from seatrial.reports import (
    Comparison,
    Report,
    ReportForm,
    agent_pairs,
    comparison_terminal,
    refuse_itself,
    stored,
    stored_report,
    terminal_summary,
    write_pieces,
    write_reports,
)
from seatrial.reports import compare as compare_agents
from seatrial.runs import Experiment, Run, RunKey
from seatrial.store import RunFilter, RunSummary, Store, StoredOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE = 500
"""Rows that are read at once."""
COUNTED = 1 << 40
ENDINGS: dict[str, ReportForm | Literal["html"]] = {
    ".html": "html",
    ".xml": "junit",
    ".ctrf.json": "ctrf",
    ".md": "markdown",
    ".csv": "csv",
    ".json": "json",
}
"""The form of a report, by how its file's name ends."""


class Runs(Sequence[Run]):
    """Runs of an experiment, in the order of the suite's cases, then by agent and trial.

    They are read from the store when they are asked for, so that any number of them fits.
    """

    def __init__(self, store: Store, experiment_id: str, where: RunFilter) -> None:
        self._store = store
        self._experiment_id = experiment_id
        self._where = where

    def rows(self) -> Iterator[RunSummary]:
        """Each as a line of a table: figures, and no messages. Read by pages."""
        after: RunKey | None = None
        while page := self._store.runs(self._experiment_id, self._where, after=after, limit=PAGE):
            yield from page
            after = page[-1].key

    def __iter__(self) -> Iterator[Run]:
        return self._store.whole_runs(self._experiment_id, self._where)

    def __len__(self) -> int:
        return self._store.count_runs(self._experiment_id, self._where, limit=COUNTED)

    def __bool__(self) -> bool:
        return self._store.count_runs(self._experiment_id, self._where, limit=1) > 0

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> list[Run]: ...
    def __getitem__(self, index: int | slice) -> Run | list[Run]:
        if isinstance(index, slice):
            return [self._store.run(row.run_id) for row in list(self.rows())[index]]
        if index < 0:
            index += len(self)
        for position, row in enumerate(self.rows()):
            if position == index:
                return self._store.run(row.run_id)
        raise IndexError(f"there are {len(self)} such runs")

    def pages(self, size: int = 100) -> Iterator[list[Run]]:
        """All of them, so many at a time."""
        if size < 1:
            raise SeatrialError("invalid_config", f"`size` is a number from 1, got {size!r}")
        runs = iter(self)
        while page := list(islice(runs, size)):
            yield page

    def __repr__(self) -> str:
        return f"<{len(self)} runs>"


class Result:
    """What an experiment came to. Printed, it is the table of the command line; in a notebook, a table.

    Its runs stay in the store; the result reads them from there. It holds the store open: `close` it, or use it in a
    `with` block, where that matters.
    """

    def __init__(self, store: Store, experiment: Experiment) -> None:
        self._store = store
        self._report: Report = stored_report(store, experiment.experiment_id, checked=False)

    @property
    def experiment_id(self) -> str:
        """Its name in the store: `seatrial report ID` shows it on the command line."""
        return self._report.experiment.experiment_id

    @property
    def report(self) -> Report:
        """All its figures: agents with rates and intervals, graders, notes."""
        return self._report

    @property
    def runs(self) -> Runs:
        """All of its runs."""
        return self._runs()

    @property
    def passed(self) -> Runs:
        """The runs that passed."""
        return self._runs("passed")

    @property
    def failed(self) -> Runs:
        """The runs that failed: the agent's doing."""
        return self._runs("failed")

    @property
    def errored(self) -> Runs:
        """The runs without a verdict: the network, the machine, a grader, or calls that are not known."""
        return self._runs("errored")

    @property
    def ok(self) -> bool:
        """Whether every run that was planned has passed."""
        summary = self._report.summary
        return 0 < summary.runs == summary.passed and self._report.unfinished is None

    def pass_rate(self, agent: str | None = None) -> float | None:
        """The share of graded runs that passed, of one agent or the only one; None where none could be graded."""
        agents = {each.agent: each for each in self._report.summary.agents}
        if agent is None and len(agents) == 1:
            return next(iter(agents.values())).pass_rate
        if agent not in agents:
            told = "there are several agents" if agent is None else f"there is no agent {agent!r}"
            raise SeatrialError("invalid_config", told, hint=f"one of {', '.join(agents)}")
        return agents[agent].pass_rate

    def run(self, case_id: str, *, agent: str | None = None, trial: int = 1) -> Run:
        """One run, by its case."""
        for row in self.runs.rows():
            if (row.case_id, row.trial) == (case_id, trial) and agent in (None, row.agent):
                return self._store.run(row.run_id)
        raise SeatrialError("not_found", f"there is no run of the case {case_id!r}, agent {agent!r}, trial {trial}")

    def save(self, path: str | Path) -> Path:
        """Write the report to a file, in the form that its name ends with: `.html`, `.md`, `.csv`, `.json`, `.xml`
        (JUnit), `.ctrf.json`, or `.txt` for what `print` shows."""
        path = Path(path)
        if path.suffix == ".txt":
            write_pieces(path, [str(self)])
            return path
        form = next((form for ending, form in ENDINGS.items() if path.name.endswith(ending)), None)
        if form is None:
            hint = f"a name that ends with one of {', '.join(ENDINGS)}, .txt"
            raise SeatrialError("invalid_config", f"no report is written to {path.name!r}", hint=hint)
        if form == "html":
            from seatrial.explorer.export import write_file

            write_file(self._store, self._report, path)
        else:
            write_reports(self._report, {form: path})
        return path

    def to_dicts(self) -> list[dict[str, Any]]:
        """A mapping for each run: agent, case, trial, outcome, score and the other figures, and the tags of its case;
        None is unknown."""
        names = RunSummary.__struct_fields__
        tags = self._store.case_tags(self.experiment_id).of
        return [
            {**{name: getattr(row, name) for name in names}, "tags": list(tags.get(row.case_id, ()))}
            for row in self.runs.rows()
        ]

    def to_dataframe(self) -> Any:
        """The same as a data frame of pandas or, where that is not installed, of polars."""
        for library in ("pandas", "polars"):
            try:
                module = __import__(library)
            except ModuleNotFoundError as error:
                if error.name != library:
                    raise
                continue
            if library == "pandas":
                return module.DataFrame(self.to_dicts())
            # All rows decide on the type of a column: the first hundred may have no cost.
            return module.DataFrame(self.to_dicts(), infer_schema_length=None)
        hint = "`pip install pandas`, or `pip install polars`; `to_dicts()` needs neither"
        raise SeatrialError(
            "invalid_config", "a data frame needs pandas or polars, and neither is installed", hint=hint
        )

    def close(self) -> None:
        """Let go of the store. A store in memory is gone then."""
        self._store.close()

    def __enter__(self) -> Result:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __str__(self) -> str:
        return terminal_summary(self._report)

    def __repr__(self) -> str:
        summary = self._report.summary
        counts = f"{summary.passed} passed, {summary.failed} failed, {summary.errored} errored"
        return f"<Result {self.experiment_id}: {counts}>"

    def _repr_html_(self) -> str:
        from seatrial.python_api.notebook import result_html  # here: most programs are no notebooks

        return result_html(self._report)

    def _runs(self, *outcomes: StoredOutcome) -> Runs:
        return Runs(self._store, self.experiment_id, RunFilter(outcomes=frozenset(outcomes)))


class Comparisons(Sequence[Comparison]):
    """Every agent of two results, before and after. Printed, it is what `seatrial compare` shows."""

    def __init__(self, pairs: Iterable[Comparison]) -> None:
        self._pairs = list(pairs)

    @overload
    def __getitem__(self, index: int) -> Comparison: ...
    @overload
    def __getitem__(self, index: slice) -> list[Comparison]: ...
    def __getitem__(self, index: int | slice) -> Comparison | list[Comparison]:
        return self._pairs[index]

    def __len__(self) -> int:
        return len(self._pairs)

    def __str__(self) -> str:
        return "\n".join(comparison_terminal(pair) for pair in self._pairs)

    def __repr__(self) -> str:
        return f"<Comparisons of {', '.join(pair.b.agent for pair in self._pairs)}>"

    def _repr_html_(self) -> str:
        from seatrial.python_api.notebook import comparison_html

        return "".join(comparison_html(pair) for pair in self._pairs)


def compare(before: Result, after: Result) -> Comparisons:
    """What changed between two results, case by case, for each agent that both have (or the only one of each)."""
    for name, value in (("before", before), ("after", after)):
        if not isinstance(value, Result):
            raise SeatrialError("invalid_config", f"`{name}` is a {type(value).__name__}, and not a `Result`")
    pairs = agent_pairs(*[[agent.agent for agent in each.report.summary.agents] for each in (before, after)])
    refuse_itself(before.report.experiment, after.report.experiment, pairs)
    sides = [stored(each._store, each.report.experiment) for each in (before, after)]
    stores = (after._store, before._store)

    def run_of(run_id: str) -> Run | None:
        for store in stores:
            try:
                return store.run(run_id)
            except SeatrialError as error:
                if error.code != "not_found":
                    raise
        return None

    return Comparisons(compare_agents(sides[0], sides[1], a, b, run_of) for a, b in pairs)
