"""`seatrial judge check SUITE LABELS.csv`: how far the judges of a suite agree with people."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.cli.exits import COULD_NOT_RUN, FAILED, PASSED, REASONS, signal_exit
from seatrial.cli.location import add_store_option, opened_store
from seatrial.errors import SeatrialError

if TYPE_CHECKING:
    from seatrial.cli.signals import StopSignals
    from seatrial.engine import LabelledRun, Opinion
    from seatrial.graders.prepared import Prepared
    from seatrial.reports.judge_check import CheckedJudge
    from seatrial.runs import Case
    from seatrial.store import Store
    from seatrial.suites import HumanLabel, Suite


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(prog=parser.prog, dest="command", required=True, metavar="check")
    check = commands.add_parser(
        "check", help="compare with human labels", description="Compare a suite's judges with human labels."
    )
    check.add_argument("suite", metavar="SUITE", help="the suite whose judges are asked")
    check.add_argument("labels", metavar="LABELS", type=Path, help="a CSV file: label, and run, or case and answer")
    check.add_argument("--grader", metavar="NAME", help="only this judge; its name as reports show it")
    check.add_argument(
        "--min-kappa", type=_kappa, metavar="K", help="fail when a judge's kappa is below this, such as 0.6"
    )
    add_store_option(check)
    check.add_argument("--json", action="store_true", help="print an array, with one object for each judge")
    parser.epilog = (
        "  seatrial judge check SUITE LABELS [--grader NAME] [--min-kappa K] [--store WHERE] [--json]\n\n"
        "LABELS is a CSV file whose first line names its columns. Each line is about one run: `label` (passed, failed\n"
        "or unsure), and either `run` (a run's id, or EXPERIMENT:CASE[:AGENT[:TRIAL]]) or `case` and `answer`. A file\n"
        "of `seatrial report --csv` with a column `label` added is one too. `grader` and `comment` are optional;\n"
        "other columns are ignored. The judges are asked again unless the store has their verdicts; nothing is\n"
        "stored.\n"
        "exit codes: 0 checked; 1 a kappa is below --min-kappa; 2 usage, or an unusable suite or file; 3 a labelled\n"
        "run was not judged, or no kappa can be computed and --min-kappa asks for one."
    )


def run(args: argparse.Namespace) -> int:
    from seatrial._support import wire
    from seatrial.cli.signals import GRACE_S, StopSignals
    from seatrial.reports.judge_check import checked_judges, judge_text
    from seatrial.reports.layout import terminal_width
    from seatrial.suites import load_suite, read_cases, read_labels

    # What graders and functions of the suite print is no part of the result.
    with redirect_stdout(sys.stderr):
        suite = load_suite(args.suite, grading="all", agents_used=(), startable=True)
        cases = {case.id: case for case in read_cases(suite, variables=os.environ, grading="all")}
    labels = read_labels(args.labels)
    labelled = _labelled(args, labels, cases)
    judges = _judges(args, suite, labelled)
    with redirect_stdout(sys.stderr), StopSignals(grace_s=GRACE_S, last_words=lambda number: None) as signals:
        found = signals.run(_asked(suite, labelled, judges, signals))
    if signals.received is not None:
        return signal_exit(signals.received)
    checked = checked_judges(found)
    if args.json:
        sys.stdout.buffer.write(wire.encode([each.data() for each in checked]) + b"\n")
    else:
        if unsure := sum(label.passed is None for label in labels):
            print(f"{unsure:,} of {len(labels):,} lines say neither passed nor failed, and are left out\n")
        sys.stdout.write("\n".join(judge_text(each, terminal_width()) for each in checked))
    return _exit(checked, args.min_kappa)


def _labelled(args: argparse.Namespace, labels: Sequence[HumanLabel], cases: dict[str, Case]) -> list[LabelledRun]:
    """The labels with the runs that they are about; raises `SeatrialError` for one that is about none."""
    from seatrial.engine import LabelledRun, answered_run
    from seatrial.problems import quoted, suggestion

    store: Store | None = None
    found: list[LabelledRun] = []
    seen: dict[str, int] = {}
    try:
        for label in labels:
            if label.passed is None:
                continue
            if label.run is None:
                case = cases.get(label.case_id or "")
                if case is None:
                    hint = suggestion(label.case_id or "", cases)
                    raise _wrong(args, label, f"the suite has no case {quoted(label.case_id or '')}", hint)
                found.append(LabelledRun(label, answered_run(case, label.answer or "", label.line), case))
                continue
            store = store or opened_store(args, read_only=True)
            each = _stored(args, store, label, cases)
            before = seen.setdefault(f"{label.grader}\0{each.run.run_id}", label.line)
            if before != label.line:
                raise _wrong(args, label, f"the run {each.run.run_id} has a label in line {before} already")
            found.append(each)
    finally:
        if store is not None:
            store.close()
    if not found:
        raise SeatrialError("invalid_config", f"no line of {args.labels} says passed or failed")
    return found


def _wrong(args: argparse.Namespace, label: HumanLabel, message: str, hint: str | None = None) -> SeatrialError:
    """What is wrong with a label, with its place in the file."""
    return SeatrialError("invalid_config", f"{args.labels}:{label.line}: {message}", hint=hint)


def _stored(args: argparse.Namespace, store: Store, label: HumanLabel, cases: dict[str, Case]) -> LabelledRun:
    from seatrial.cli.selection import find_run
    from seatrial.engine import LabelledRun
    from seatrial.runs import RunKey

    try:
        run = store.run(find_run(store, label.run or ""))
        case = cases.get(run.case_id or "")
        if case is None and run.experiment_id is not None and isinstance(run.key, RunKey):
            case = store.case(run.experiment_id, run.key.case_id)
    except SeatrialError as error:
        message = f"{args.labels}:{label.line}: {error.message}"
        raise SeatrialError(error.code, message, hint=error.hint) from None
    if case is None:
        raise _wrong(args, label, f"the run {run.run_id} belongs to no case, so there is nothing to judge it by")
    return LabelledRun(label, run, case, store.known_verdicts(run.run_id))


def _judges(args: argparse.Namespace, suite: Suite, labelled: Sequence[LabelledRun]) -> list[list[Prepared]]:
    """The judges that each labelled run is for."""
    from seatrial.engine import judges_of
    from seatrial.problems import quoted, suggestion

    of_case = judges_of(suite, [each.case for each in labelled])
    names = list(dict.fromkeys(judge.name for judges in of_case.values() for judge in judges))
    if not names:
        raise SeatrialError("invalid_config", "no grader of the suite asks a model", hint="there is nothing to check")
    if args.grader is not None and args.grader not in names:
        message = f"no judge of these runs is called {quoted(args.grader)}"
        raise SeatrialError("invalid_config", message, hint=suggestion(args.grader, names) or _one_of(names))
    found: list[list[Prepared]] = []
    for each in labelled:
        name = each.label.grader or args.grader
        judges = [judge for judge in of_case[each.case.id] if name in (None, judge.name)]
        if not judges:
            named = "" if name is None else f" {quoted(name)}"
            message = f"no judge{named} looks at the case {quoted(each.case.id)}"
            raise _wrong(args, each.label, message, suggestion(name or "", names) or _one_of(names))
        if len(judges) > 1:
            listed = ", ".join(judge.name for judge in judges)
            raise _wrong(
                args,
                each.label,
                f"the case {quoted(each.case.id)} has several judges: {listed}",
                "say which one the labels are for: `--grader NAME`, or a column `grader`",
            )
        if args.grader not in (None, name):
            judges = []  # a label for another judge
        found.append(judges)
    return found


def _one_of(names: Sequence[str]) -> str:
    return f"the judges are {', '.join(names)}"


async def _asked(
    suite: Suite, labelled: Sequence[LabelledRun], judges: Iterable[Sequence[Prepared]], signals: StopSignals
) -> list[Opinion]:
    from seatrial.cli.terminal import Progress
    from seatrial.engine import Stop, opinions, surroundings

    stop = Stop()
    signals.attach(lambda number: stop.request(REASONS[number]))
    with Progress("labels checked") as progress:
        async with AsyncExitStack() as stack:
            around = await surroundings(suite, os.environ, stack)
            return await opinions(
                [(each, judge) for each, several in zip(labelled, judges, strict=True) for judge in several],
                around,
                secrets=suite.secrets(os.environ),
                concurrency=suite.concurrency,
                finished=progress.advance,
                stop=stop,
            )


def _exit(checked: Sequence[CheckedJudge], least: float | None) -> int:
    kappas = [each.agreement.kappa for each in checked]
    if least is not None and any(kappa is not None and kappa < least for kappa in kappas):
        for each in checked:
            if each.agreement.kappa is not None and each.agreement.kappa < least:
                print(f"seatrial: the kappa of {each.grader} is below {least:g}", file=sys.stderr)
        return FAILED
    if any(each.not_judged for each in checked) or (least is not None and None in kappas):
        return COULD_NOT_RUN
    return PASSED


def _kappa(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 2.0
    if not -1 <= value <= 1:
        raise argparse.ArgumentTypeError(f"expected a number from -1 to 1, got {text[:40]!r}")
    return value
