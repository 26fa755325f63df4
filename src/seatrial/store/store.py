"""The store: everything that is kept of experiments and their runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from types import TracebackType
from typing import Literal

import msgspec
import sqlalchemy as sa

from seatrial.errors import SeatrialError
from seatrial.events.types import RunStatus
from seatrial.runs import Case, Experiment, Grade, ModelCosts, Run, RunHead, RunKey, ServedRun, Verdict
from seatrial.store import (
    conversion,
    counts,
    event_log,
    experiments,
    find,
    history,
    ingest,
    items,
    names,
    of_run,
    outline,
    pairs,
    queries,
    reviews,
    served,
    serving,
)
from seatrial.store.conversion import Conversion
from seatrial.store.database import Callback, Database, Listener, WriteProbe, without_passwords
from seatrial.store.experiments import CaseTags, ExperimentSummary
from seatrial.store.filter.language import FilterTerm
from seatrial.store.filter.suggest import Suggestion, suggestions
from seatrial.store.find import TextHits
from seatrial.store.history import CaseNeighbours, CaseTrials
from seatrial.store.items import StoredStep, TranscriptItem
from seatrial.store.keyring import Keyring
from seatrial.store.names import Named
from seatrial.store.of_run import GradingSummary, StepLine
from seatrial.store.outline import OutlineEntry
from seatrial.store.pairs import CaseOrder, CasePlace, CaseTallies, CellsOf, TrialLine
from seatrial.store.presence import Hold, Presence
from seatrial.store.queries import RunFilter, RunNotes, RunRecord
from seatrial.store.reviews import Review, ReviewCandidate, ReviewedRun
from seatrial.store.rollups import AgentTotals, GraderCounts, NoteTotals, SignatureCount, Totals
from seatrial.store.rows import Cell, RunSummary, StoredOutcome
from seatrial.store.search import Hit
from seatrial.store.served import Admission, Admitted, Ending
from seatrial.store.writer import PATIENCE_S, Receipt, Writer
from seatrial.transcript import Note

RUNS_AT_ONCE = 200
CASES_A_PAGE = 50

_ALL = RunFilter()


class Store:
    """Where runs live. Made by `open_store`; every method may be called from any thread.

    Reading blocks the thread that reads. Writing does not: it gives a `Receipt`, kept once the write has been
    committed, which can be awaited, waited for, or left alone. What is written stays in memory until then, so a caller
    that has much to write waits for its receipts now and then.
    """

    def __init__(self, dialect: Database, patience_s: float = PATIENCE_S) -> None:
        self._dialect = dialect
        self._writer = Writer(dialect, patience_s)
        self.keyring = Keyring(self._writer, self._reading)
        self._numbers: dict[str, int] = {}
        self._conversion: Conversion | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"Store({self._dialect.name!r})"

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def address(self, *, with_password: bool = False) -> str | None:
        """The URL by which processes on other machines open this store; None for a file, or a store in memory.

        Without the password unless it is asked for: that is for the environment of a process, and for nothing else.
        """
        url = self._dialect.url
        if url is None or with_password:
            return None if url is None else url.render_as_string(hide_password=False)
        return without_passwords(url)

    def close(self) -> None:
        """Write what is still on its way, and close the database."""
        if self._conversion is not None:
            self._conversion.close()
        self._writer.close()
        self._dialect.close()
        self._closed = True

    # Conversion of what earlier versions wrote

    def convert(self) -> None:
        """Begin to convert, in the background, what an earlier version wrote. `open_store` does that."""
        if self._conversion is None and self.unconverted():
            self._conversion = Conversion(self._next_batch, self._writer.submit)

    def unconverted(self) -> int:
        """How many runs an earlier version wrote that are not converted yet; they can be read like all others."""
        with self._reading() as connection:
            return conversion.pending(connection)

    def _next_batch(self) -> list[int]:
        with self._reading() as connection:
            return conversion.next_batch(connection)

    # Writing

    def probe(self) -> Receipt[None]:
        """Whether the store takes writes: the receipt is kept when it does, else it says why not."""
        self._dialect.check_room()
        return self._writer.submit(WriteProbe())

    def create_experiment(self, experiment: Experiment, cases: Iterable[Case]) -> int:
        """Store an experiment and its cases, and say how many there are. Blocks; takes the cases as they come.

        An experiment of which not all cases could be stored is none: nobody will see it.
        """
        number = self._writer.submit(experiments.CreateExperiment(experiment)).wait()
        self._numbers[experiment.experiment_id] = number
        count = 0
        before: Receipt[None] | None = None
        remaining = iter(cases)
        while some := list(islice(remaining, experiments.CASES_AT_ONCE)):
            receipt = self._writer.submit(experiments.AddCases(number, count, some))
            count += len(some)
            if before is not None:
                before.wait()
            before = receipt
        if before is not None:
            before.wait()
        self._writer.submit(experiments.MarkExperiment(number, cases=count)).wait()
        return count

    def hold_experiment(self, experiment_id: str) -> Hold:
        """Take the right to run an experiment, until it is closed or this process ends, however it does. Blocks.

        `conflict`, with the name of the process that has it, when that is another one.
        """
        return self._dialect.hold(self._number(experiment_id), experiment_id)

    def resume_experiment(self, experiment_id: str) -> Receipt[None]:
        """Mark an experiment as running again."""
        number = self._number(experiment_id)
        return self._writer.submit(
            experiments.MarkExperiment(number, status="running", finished_at=None, stop_reason=None)
        )

    def finish_experiment(
        self, experiment_id: str, *, finished_at: int, stop_reason: str | None = None
    ) -> Receipt[None]:
        """Mark an experiment as ended: `stopped`, before all was run, when there is a reason; else `finished`."""
        return self._writer.submit(
            experiments.MarkExperiment(
                self._number(experiment_id),
                status="finished" if stop_reason is None else "stopped",
                finished_at=finished_at,
                stop_reason=stop_reason,
            )
        )

    def add_notes(self, experiment_id: str, agent: str, notes: Iterable[Note]) -> Receipt[None]:
        """Store what an agent said that belongs to no run, behind what it said before."""
        return self._writer.submit(experiments.AddNotes(self._number(experiment_id), agent, notes))

    def begin_run(
        self, experiment_id: str, key: RunKey, run_id: str, *, started_at: int | None = None
    ) -> Receipt[None]:
        """Make room for a run whose events are to be stored while it is running; others need not be begun.

        An unfinished run under the same key, left by a process that died, is removed with its events, also when it
        has the same id. A finished one is a `conflict`.
        """
        return self._writer.submit(ingest.BeginRun(run_id, self._number(experiment_id), key, started_at))

    def append_events(self, run_id: str, events: Sequence[bytes], *, first: int | None = None) -> Receipt[int]:
        """Store events, JSON each, behind those that the run has; gives the sequence of the last of them.

        Sequences count from 0 without a gap. With `first`, the append is a `sequence_conflict` unless it begins there;
        the error's detail `head` is the last sequence that the run has. A run that has ended takes none (`run_ended`).
        """
        return self._writer.submit(event_log.append(run_id, events, first))

    def record_run(
        self,
        run: Run,
        *,
        events: Sequence[bytes] = (),
        first: int | None = None,
        bodies: Iterable[bytes] = (),
        replace: bool = False,
    ) -> Receipt[bool]:
        """Store a run that has ended, with all its parts, in one transaction.

        `events` come behind those that the run appended; `first` says how many that were, so that none is missing
        unnoticed. `bodies` are what earlier attempts brought, if anything. Gives False when the run is not stored:
        another one is there under the same key, and not to be replaced, or has taken the place of this one, whose
        appended events are gone. Recording the same run again changes nothing.
        """
        if run.experiment_id is None:
            raise SeatrialError("conflict", f"run {run.run_id} belongs to no experiment")
        number = self._number(run.experiment_id)
        return self._writer.submit(ingest.RecordRun(run, number, events, first, bodies, replace))

    def record_verdicts(self, run_id: str, verdicts: Sequence[Verdict], grade: Grade) -> Receipt[None]:
        """Store a new grading of a run. It counts from now on; earlier verdicts stay known by their keys."""
        return self._writer.submit(ingest.RecordVerdicts(run_id, verdicts, grade))

    def doubt_run(self, run: Run, note: Note, grade: Grade) -> Receipt[None]:
        """Store that a further note was made on a run that is stored, what is known of its calls now, and its new
        grading: all at once."""
        return self._writer.submit(ingest.DoubtRun(run, note, grade))

    def fail_run(self, run: Run, grade: Grade) -> Receipt[None]:
        """Store the fault that a run turned out to have after it was stored as completed, and its new grading: all at
        once."""
        return self._writer.submit(ingest.FailRun(run, grade))

    def add_review(self, run_id: str, review: Review) -> Receipt[int]:
        """Store what a person says of a run. What they said before stays; the latest counts."""
        return self._writer.submit(reviews.AddReview(run_id, review))

    # The run service

    def begin_serving(self, server_id: str, created_at: int) -> Presence:
        """Say that this server is alive, and make ready for its runs. Blocks.

        A SQLite file can have one server: `conflict` when there is another.
        """
        claim = self._dialect.claim(server_id)
        try:
            self._numbers[server_id] = self._writer.submit(serving.BeginServing(server_id, created_at)).wait()
        except SeatrialError:
            claim.close()
            raise
        return claim

    def note_address(self, address: str) -> None:
        """Say where the server is that has this store; `served_at` gives it while that server is alive."""
        self._dialect.note_address(address)

    def served_at(self) -> str | None:
        """The address of the server that has this store; None without one, and of a database that can have many."""
        return self._dialect.served_at()

    def listen(self, callback: Callback) -> Listener:
        """Listen for runs to which other processes add events, or give another status. Blocks until it listens.

        On SQLite there are no notices. The callback is called in a thread of the listener's own.
        """
        try:
            return self._dialect.listen(callback)
        except self._dialect.errors as error:
            raise self._dialect.failure(error).error from error

    def admit_run(self, admission: Admission) -> Receipt[Admitted]:
        """Take the thread for a run and store it with its first event; or find the run that the same request made.

        Refused with `thread_busy` (detail `runId`), `resume_refused`, `idempotency_conflict` (detail `runId`), or
        `conflict` when the run's id is in use.
        """
        return self._writer.submit(serving.AdmitRun(admission, self._number(admission.server_id)))

    def end_run(self, end: Ending) -> Receipt[bool]:
        """Store the last events and the record of a served run, set its status and free its thread, all at once.

        Gives False, and changes nothing, when it had ended already. Events that do not begin behind the last one are a
        `sequence_conflict` (detail `head`).
        """
        return self._writer.submit(serving.EndRun(end))

    def mark_run(
        self,
        run_id: str,
        *,
        status: Literal["pending", "running"] | None = None,
        cancel_requested: bool | None = None,
    ) -> Receipt[ServedRun]:
        """Change what is known of a served run, and give it; one that has ended is left as it is."""
        return self._writer.submit(serving.MarkRun(run_id, status, cancel_requested))

    def forget_events(self, run_id: str, before: int) -> Receipt[int]:
        """Remove events with lower sequences; gives the first that is left.

        Events are stored by the append, and what was appended together goes together. The last append is kept
        always, and the terminal event with it.
        """
        return self._writer.submit(serving.ForgetEvents(run_id, before))

    def ended_before(self, ended_at: int, limit: int) -> list[str]:
        """Ids of served runs that ended earlier and have events that can be forgotten, the longest ended first."""
        with self._reading() as connection:
            return served.ended_before(connection, ended_at, limit)

    def served_run(self, run_id: str) -> ServedRun:
        """One run of the service."""
        with self._reading() as connection:
            return served.one(connection, run_id)

    def served_runs(
        self,
        *,
        agent: str | None = None,
        thread_id: str | None = None,
        statuses: frozenset[RunStatus] | None = None,
        before: str | None = None,
        limit: int = 50,
        terms: Sequence[FilterTerm] = (),
    ) -> tuple[list[ServedRun], str | None]:
        """A page of runs of the service, the newest first, and what gives the next one as `before`, if there is one."""
        with self._reading() as connection:
            return served.page(connection, agent, thread_id, statuses, before, limit, terms)

    def thread_runs(self, thread_id: str) -> list[ServedRun]:
        """All runs of a thread, in their order; none when there is no such thread."""
        with self._reading() as connection:
            return served.of_thread(connection, thread_id)

    def active_runs(self, server_id: str | None = None) -> list[ServedRun]:
        """Runs of the service that have not ended, of one server or of all; the oldest first."""
        with self._reading() as connection:
            return served.active(connection, server_id)

    def run_input(self, run_id: str) -> bytes:
        """The RunAgentInput that a run of the service was asked for with."""
        with self._reading() as connection:
            return served.input_of(connection, run_id)

    def run_head(self, run_id: str) -> RunHead:
        """Where the event log of any run begins and ends; costs the same for every length of it."""
        with self._reading() as connection:
            return served.head(connection, run_id)

    # Reading

    def experiments(self, limit: int = 100) -> list[ExperimentSummary]:
        """The newest first."""
        with self._reading() as connection:
            return experiments.latest(connection, limit)

    def experiment_page(
        self, *, before: str | None = None, limit: int = 100, terms: Sequence[FilterTerm] = ()
    ) -> list[ExperimentSummary]:
        """The newest first, of those that were created before this one; with terms, those with a run that matches."""
        number = None if before is None else self._number(before)
        with self._reading() as connection:
            return experiments.page(connection, number, limit, terms)

    def earlier_experiments(self, experiment_id: str, suite_hash: str, *, limit: int = 30) -> list[ExperimentSummary]:
        """Experiments that ran a suite before this one, the newest first."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return experiments.earlier_of_suite(connection, number, suite_hash, limit)

    def suite_names(self, experiment_ids: Sequence[str]) -> dict[str, str]:
        """The names of the suites of these experiments; those of suites without one are left out."""
        with self._reading() as connection:
            return experiments.suite_names(connection, experiment_ids)

    def is_counted(self, experiment_id: str) -> bool:
        """Whether all runs of an experiment are in its rollups; those of an earlier version come there later."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return counts.all_counted(connection, number)

    def resolve_experiment(self, ref: str) -> Experiment:
        """The experiment meant by `latest`, an id, a name (the newest of that name) or the beginning of an id."""
        with self._reading() as connection:
            return experiments.resolve(connection, ref)

    def case_count(self, experiment_id: str) -> int:
        """How many cases an experiment has."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return experiments.case_count(connection, number)

    def cases(self, experiment_id: str, *, damaged: list[SeatrialError] | None = None) -> Iterator[Case]:
        """All cases in the order of the suite.

        One that cannot be read is an error (`damaged`); with a list for such errors, it is left out.
        """
        number = self._number(experiment_id)
        first = 0
        while True:
            with self._reading() as connection:
                page = experiments.case_page(connection, number, first)
            if not page:
                return
            for row in page:
                try:
                    case = experiments.case_of(row)
                except SeatrialError as error:
                    if damaged is None:
                        raise
                    damaged.append(error)
                else:
                    yield case
            first += len(page)

    def case_tags(self, experiment_id: str) -> CaseTags:
        """The tags of all cases."""
        number = self._number(experiment_id)
        found: dict[str, tuple[str, ...]] = {}
        seen = unread = 0
        while True:
            with self._reading() as connection:
                page = experiments.case_page(connection, number, seen)
            if not page:
                return CaseTags(found, seen, unread)
            seen += len(page)
            for row in page:
                try:
                    if tags := experiments.tags_of(row):
                        found[row.case_id] = tuple(dict.fromkeys(tags))
                except (SeatrialError, msgspec.DecodeError, UnicodeDecodeError):
                    unread += 1

    def case(self, experiment_id: str, case_id: str) -> Case:
        """One case."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return experiments.case(connection, number, case_id)

    def done_keys(self, experiment_id: str) -> dict[RunKey, StoredOutcome]:
        """The outcome of every run that has ended."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return queries.done_keys(connection, number)

    def unfinished_runs(self, experiment_id: str) -> dict[RunKey, str]:
        """The ids of the runs that were begun and have not ended."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return queries.unfinished_runs(connection, number)

    def runs(
        self,
        experiment_id: str,
        where: RunFilter = _ALL,
        *,
        after: RunKey | None = None,
        limit: int = 500,
        by_cases: bool = False,
    ) -> list[RunSummary]:
        """A page of runs, in the order of the suite's cases, then by agent and trial; those behind the run `after`.
        `by_cases` is for experiments with damaged runs: each is there, and in its place."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return queries.run_page(connection, number, where, after, limit, by_cases=by_cases)

    def count_runs(self, experiment_id: str, where: RunFilter = _ALL, *, limit: int = 10_000) -> int:
        """How many runs there are; counted up to the limit."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return queries.run_count(connection, number, where, limit)

    def cases_with_runs(self, experiment_id: str, where: RunFilter) -> frozenset[str]:
        """The cases of which there is such a run."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return queries.cases_with_runs(connection, number, where)

    def has_tag(self, experiment_id: str, tags: Iterable[str]) -> bool:
        """Whether a case of an experiment has one of these tags."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return queries.has_tag(connection, number, tags)

    def filter_suggestions(self, experiment_id: str | None, text: str, caret: int) -> list[Suggestion]:
        """What may be meant at this place of a filter; without an experiment, only what every store has."""
        number = None if experiment_id is None else self._number(experiment_id)
        with self._reading() as connection:
            return suggestions(connection, number, text, caret)

    def whole_runs(self, experiment_id: str, where: RunFilter = _ALL, *, to_grade: bool = False) -> Iterator[Run]:
        """All runs in the same order, each with all its parts but the body.

        A run of which a part is damaged is errored. Those that are to be graded need no verdicts: a run of which only
        these are damaged is whole, and has none.
        """
        number = self._number(experiment_id)
        after: RunKey | None = None
        while True:
            with self._reading() as connection:
                page = queries.whole_page(connection, number, where, after, RUNS_AT_ONCE, to_grade=to_grade)
            yield from page
            if len(page) < RUNS_AT_ONCE:
                return
            last = page[-1].key
            if not isinstance(last, RunKey):
                return  # a server's runs are no experiment
            after = last

    def run(self, run_id: str) -> Run:
        """One run with all its parts. Its events are read with `events`."""
        with self._reading() as connection:
            return queries.run(connection, run_id)

    def run_record(self, run_id: str) -> RunRecord:
        """One run without what it may have any amount of; costs the same for every length of it."""
        with self._reading() as connection:
            return queries.run_record(connection, run_id)

    def items(self, run_id: str, first: int = 0, count: int = 100) -> list[TranscriptItem]:
        """So many messages of a run, from the one with the index `first` on; costs the same wherever they are."""
        with self._reading() as connection:
            return items.item_page(connection, run_id, first, count)

    def steps(
        self, run_id: str, first: int = 0, count: int = 100, *, whole_arguments: bool = False
    ) -> list[StoredStep]:
        """So many steps of a run, from the one with the index `first` on; costs the same wherever they are.

        With `whole_arguments`, arguments are there however long they are, so that calls can be compared.
        """
        with self._reading() as connection:
            return items.step_page(connection, run_id, first, count, whole_arguments=whole_arguments)

    def step_lines(self, run_id: str, first: int = 0, count: int = 1000) -> list[StepLine]:
        """The same without arguments and results."""
        with self._reading() as connection:
            return of_run.step_lines(connection, run_id, first, count)

    def failed_steps(self, run_id: str, limit: int = 50) -> list[StoredStep]:
        """The first so many steps of a run that failed."""
        with self._reading() as connection:
            return of_run.failed_steps(connection, run_id, limit)

    def good_calls(self, run_id: str, name: str, after: int, limit: int = 200) -> list[StoredStep]:
        """The first so many calls of a tool that went well, behind the step with the index `after`."""
        with self._reading() as connection:
            return of_run.good_calls(connection, run_id, name, after, limit)

    def gradings(self, run_id: str) -> list[GradingSummary]:
        """All gradings of a run, the first one first; the last one counts."""
        with self._reading() as connection:
            return of_run.gradings(connection, run_id)

    def verdicts_of(self, run_id: str, grading: int) -> list[Verdict]:
        """The verdicts of one grading of a run."""
        with self._reading() as connection:
            return of_run.verdicts_of(connection, run_id, grading)

    def case_runs(self, experiment_id: str, case_id: str) -> list[RunSummary]:
        """The runs of one case by all agents, at most 500; costs the same however many other runs there are."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return of_run.case_runs(connection, number, case_id)

    def case_history(self, experiment_id: str, case_id: str, agent: str, *, limit: int = 24) -> list[CaseTrials]:
        """This experiment and those before it in which an agent ran a case, the newest first."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return history.case_history(connection, number, case_id, agent, limit)

    def case_neighbours(self, experiment_id: str, case_id: str) -> CaseNeighbours:
        """The cases before and after one in its suite."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return history.case_neighbours(connection, number, case_id)

    def outline(self, run_id: str, first: int = 0, count: int = 1000) -> list[OutlineEntry]:
        """What a timeline is drawn from: entries for so many messages of a run, from the one with this index on."""
        with self._reading() as connection:
            return outline.outline_page(connection, run_id, first, count)

    def overview(self, run_id: str) -> list[OutlineEntry]:
        """The outline of a whole run in at most 512 entries, however many messages it has."""
        with self._reading() as connection:
            return outline.overview_of(connection, run_id)

    def text(self, address: str) -> str:
        """A long text that was taken out of a message, by its content address."""
        with self._reading() as connection:
            return queries.text(connection, address)

    def find_in_run(self, run_id: str, text: str, *, after: int = -1, limit: int = 50) -> TextHits:
        """Texts of one run that have this, in order, whatever its case; those behind the place `after`."""
        with self._reading() as connection:
            return find.find_in_run(connection, run_id, text, after, limit)

    def events(self, run_id: str, *, after: int = -1, limit: int = 1000) -> list[tuple[int, bytes]]:
        """(sequence, event) of at most so many events behind the sequence `after`."""
        with self._reading() as connection:
            return event_log.event_page(connection, run_id, after, limit)

    def body(self, address: str) -> bytes:
        """What an agent sent, verbatim, by its content address."""
        with self._reading() as connection:
            return queries.body(connection, address)

    def known_verdicts(self, run_id: str) -> dict[str, Verdict]:
        """Every verdict ever given on a run, by its content key."""
        with self._reading() as connection:
            return queries.known_verdicts(connection, run_id)

    def reviews(self, experiment_id: str) -> list[ReviewedRun]:
        """All reviews of the runs of an experiment, the oldest first, with what graders say of these runs."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return reviews.of_experiment(connection, number)

    def run_reviews(self, run_id: str) -> list[ReviewedRun]:
        """All reviews of a run, the oldest first."""
        with self._reading() as connection:
            return reviews.of_run(connection, run_id)

    def doubtful_runs(self, experiment_id: str, grader: str, *, limit: int = 50) -> list[ReviewCandidate]:
        """Runs of which a grader's votes are split, then those of which it says another thing than all graders
        together."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            split = reviews.split(connection, number, grader, limit)
            return [*split, *reviews.contradicted(connection, number, grader, limit)]

    def judged_runs(self, experiment_id: str, grader: str | None, keys: Sequence[RunKey]) -> dict[RunKey, str]:
        """The ids of those of these runs that a grader passed or failed; with None, all graders together."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return reviews.judged(connection, number, grader, keys)

    def case_ids(self, experiment_id: str, positions: Sequence[int]) -> dict[int, str]:
        """The cases at these places of the suite."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return reviews.case_ids(connection, number, positions)

    def totals(self, experiment_id: str, *, flaky: int = 100) -> Totals:
        """What the runs of each agent add up to, and the first so many flaky cells."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return counts.totals(connection, number, flaky)

    def many_totals(self, experiment_ids: Sequence[str], *, rates_only: bool = False) -> dict[str, list[AgentTotals]]:
        """What the runs of each agent add up to, of several experiments at once. Percentiles are about right; with
        `rates_only`, there are only outcomes and trials."""
        with self._reading() as connection:
            return counts.many_totals(connection, experiment_ids, rates_only=rates_only)

    def matrix(self, experiment_id: str, *, first: int = 0, limit: int = CASES_A_PAGE) -> list[Cell]:
        """What each agent made of each case: of so many cases in the order of the suite, behind the first so many."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return counts.matrix(connection, number, first, limit)

    def agent_cells(self, experiment_id: str, agent: str) -> list[Cell]:
        """What one agent made of each case that it has runs of, in the order of the suite."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return counts.agent_cells(connection, number, agent)

    def case_tallies(self, experiment_id: str, agent: str, base: CellsOf | None = None) -> CaseTallies:
        """What the cells of an agent come to, beside those of a base: costs the same for any number of trials."""
        number, other = self._number(experiment_id), None if base is None else self._number(base.experiment_id)
        with self._reading() as connection:
            there = None if base is None or other is None else (other, base.agent)
            return pairs.case_tallies(connection, number, agent, there)

    def case_page(self, experiment_id: str, order: CaseOrder, *, first: int = 0, limit: int = 50) -> list[CasePlace]:
        """So many cases in an order, behind the first so many."""
        number, base = self._number(experiment_id), self._base(order)
        with self._reading() as connection:
            return pairs.case_page(connection, number, base, order, first, limit)

    def matching_cases(self, experiment_id: str, order: CaseOrder, *, limit: int = 10_000) -> int:
        """How many lines such pages have together; counted up to the limit."""
        number, base = self._number(experiment_id), self._base(order)
        with self._reading() as connection:
            return pairs.matching_cases(connection, number, base, order, limit)

    def _base(self, order: CaseOrder) -> int | None:
        return None if order.base is None else self._number(order.base.experiment_id)

    def cells_of(self, experiment_id: str, case_ids: Sequence[str], agents: Sequence[str]) -> list[Cell]:
        """What these agents made of these cases."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return pairs.cells_of(connection, number, case_ids, agents)

    def trials_of(
        self, experiment_id: str, case_ids: Sequence[str], agents: Sequence[str], *, most: int = 10
    ) -> list[TrialLine]:
        """The first so many trials of these cases by these agents, by case, agent and trial."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return pairs.trials_of(connection, number, case_ids, agents, most)

    def failed_verdicts(self, run_ids: Sequence[str]) -> dict[str, list[Verdict]]:
        """The verdicts of these runs that count and did not pass."""
        with self._reading() as connection:
            return of_run.failed_verdicts(connection, run_ids)

    def step_names(self, wanted: Mapping[str, Iterable[int]]) -> dict[str, dict[int, str]]:
        """The tools of these steps of these runs."""
        with self._reading() as connection:
            return of_run.step_names(connection, wanted)

    def add_examples(self, experiment_id: str, cells: Iterable[Cell]) -> None:
        """Say which runs of these cells to look at: the first that passed, failed and errored."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            counts.add_examples(connection, number, list(cells))

    def signatures(self, experiment_id: str, *, agent: str | None = None, limit: int = 100) -> list[SignatureCount]:
        """In which ways runs fail or err, of all agents or of one, the most frequent first."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return counts.signatures(connection, number, limit, agent)

    def grader_counts(self, experiment_id: str, without: Collection[str] = ()) -> list[GraderCounts]:
        """What each grader said of each agent; not counting what it said of these runs."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return counts.graders(connection, number, without)

    def errored_with_failure(self, experiment_id: str) -> dict[str, int]:
        """Of each agent, how many runs errored although a grader failed them; agents without any are left out."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return counts.errored_with_failure(connection, number)

    def agent_model_costs(self, experiment_id: str) -> dict[str, ModelCosts]:
        """What asking models to grade the runs of each agent cost; agents for which none was asked are left out."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return counts.agent_model_costs(connection, number)

    def run_model_costs(self, run_ids: Iterable[str]) -> dict[str, ModelCosts]:
        """The same of each of these runs."""
        with self._reading() as connection:
            return counts.run_model_costs(connection, list(run_ids))

    def note_totals(self, experiment_id: str) -> NoteTotals:
        """What was noted on the runs of each agent, by code and weight."""
        number = self._number(experiment_id)
        with self._reading() as connection:
            return counts.note_totals(connection, number)

    def run_notes(self, run_ids: Iterable[str], *, limit: int) -> dict[str, RunNotes]:
        """What was noted on these runs, at most so many notes of one, and how complete their calls are."""
        with self._reading() as connection:
            return queries.run_notes(connection, list(run_ids), limit)

    def search(
        self,
        text: str,
        *,
        experiment_id: str | None = None,
        where: RunFilter = _ALL,
        before: str | None = None,
        limit: int = 20,
    ) -> list[Hit]:
        """Runs whose messages or steps contain all of these words, the newest first; see `search` for the syntax. With
        `before`, those that are older than this run."""
        number = self._number(experiment_id) if experiment_id is not None else None
        with self._reading() as connection:
            return queries.search(connection, self._dialect, text, number, where, before, limit)

    def named(self, text: str, *, experiment_id: str | None = None, limit: int = 6) -> Named:
        """Experiments and cases with this text in their names, and runs whose id begins with it; so many of each."""
        number = self._number(experiment_id) if experiment_id is not None else None
        with self._reading() as connection:
            return names.named(connection, text, number, limit)

    def _number(self, experiment_id: str) -> int:
        number = self._numbers.get(experiment_id)
        if number is None:
            with self._reading() as connection:
                number = self._numbers[experiment_id] = experiments.number(connection, experiment_id)
        return number

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        try:
            with self._dialect.reading.connect() as connection:
                yield connection
        except self._dialect.errors as error:
            if self._closed:  # one in memory is empty then
                raise SeatrialError("store_unavailable", "the store is closed, and what was in it is gone") from error
            raise self._dialect.failure(error).error from error
