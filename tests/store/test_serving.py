"""Admitting runs to threads, on both stores."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from strategies import records, served
from strategies.served import NOW, admission, answers, ending, interrupted

from seatrial.errors import SeatrialError
from seatrial.events.types import Interrupt
from seatrial.runs import RunHead, ServedKey
from seatrial.store import Admission, Admitted, Receipt, Store, open_store


@pytest.fixture
def serving(store: Store) -> Iterator[Store]:
    """A store with the server `server-1`."""
    presence = store.begin_serving("server-1", NOW)
    yield store
    presence.close()


def refused(store: Store, wanted: Admission) -> SeatrialError:
    with pytest.raises(SeatrialError) as caught:
        store.admit_run(wanted).wait()
    return caught.value


def result(receipt: Receipt[Admitted]) -> Admitted | SeatrialError:
    try:
        return receipt.wait()
    except SeatrialError as error:
        return error


def test_an_admitted_run_is_there_with_its_first_event(serving: Store) -> None:
    admitted = serving.admit_run(admission(idempotency_key="key-1", input=b'{"messages":[]}' * 1000)).wait()
    assert admitted.created
    assert serving.served_run("run-1") == admitted.run
    assert admitted.run.status == "running"
    assert (admitted.run.server_id, admitted.run.idempotency_key) == ("server-1", "key-1")
    assert serving.events("run-1") == [(0, served.STARTED)]
    assert serving.run_head("run-1") == RunHead("run-1", "thread-1", "running", 0, 1, closed=False)
    assert serving.run_input("run-1") == b'{"messages":[]}' * 1000
    run = serving.run("run-1")
    assert (run.experiment_id, run.key, run.started_at) == (None, ServedKey("crew", "thread-1"), NOW)
    assert serving.append_events("run-1", [b"1"], first=1).wait() == 1


def test_the_experiment_of_a_server_is_not_listed(serving: Store) -> None:
    serving.admit_run(admission()).wait()
    assert serving.experiments() == []
    with pytest.raises(SeatrialError):
        serving.resolve_experiment("latest")


def test_a_thread_has_one_run_at_a_time(serving: Store) -> None:
    serving.admit_run(admission()).wait()
    error = refused(serving, admission("run-2"))
    assert (error.code, error.details) == ("thread_busy", {"runId": "run-1"})
    assert serving.admit_run(admission("run-3", "thread-2")).wait().created
    serving.end_run(ending()).wait()
    assert serving.admit_run(admission("run-2")).wait().created
    assert [run.run_id for run in serving.thread_runs("thread-1")] == ["run-1", "run-2"]


def test_a_pushed_run_belongs_to_no_server(serving: Store) -> None:
    run = serving.admit_run(admission(pushed=True)).wait().run
    assert run.pushed
    assert run.server_id is None
    assert serving.served_run("run-1") == run
    assert serving.active_runs("server-1") == []
    assert serving.active_runs() == [run]


def test_the_same_request_with_the_same_key_gives_the_same_run(serving: Store) -> None:
    first = serving.admit_run(admission(idempotency_key="k")).wait()
    again = serving.admit_run(admission("run-2", idempotency_key="k")).wait()
    assert (first.run, again.created) == (again.run, False)
    serving.end_run(ending()).wait()
    assert serving.admit_run(admission("run-3", idempotency_key="k")).wait().run.status == "completed"
    assert [run.run_id for run in serving.thread_runs("thread-1")] == ["run-1"]


def test_a_key_that_was_used_for_something_else_is_refused(serving: Store) -> None:
    serving.admit_run(admission(idempotency_key="k")).wait()
    error = refused(serving, admission("run-2", "thread-2", idempotency_key="k", request=b"other"))
    assert (error.code, error.details) == ("idempotency_conflict", {"runId": "run-1"})
    other_agent = admission("run-2", "thread-2", idempotency_key="k", request=b"other", agent="other")
    assert serving.admit_run(other_agent).wait().created


def test_a_run_id_is_used_once_also_by_experiments(serving: Store) -> None:
    serving.create_experiment(records.experiment(), records.cases(1))
    serving.record_run(records.run(run_id="trial")).wait()
    serving.admit_run(admission()).wait()
    for run_id in ("trial", "run-1"):
        assert refused(serving, admission(run_id, "thread-2")).code == "conflict"
    assert serving.thread_runs("thread-2") == []


def test_open_interrupts_must_all_be_answered(serving: Store) -> None:
    serving.admit_run(admission()).wait()
    serving.end_run(interrupted("run-1", 1, "a", "b")).wait()
    for resume in (None, [], answers("a"), answers("a", "b", "c"), answers("c")):
        error = refused(serving, admission("run-2", resume=resume))
        assert error.code == "resume_refused"
    assert serving.served_run("run-1").status == "input_required"
    assert serving.admit_run(admission("run-2", resume=answers("b", "a"))).wait().created
    assert serving.served_run("run-1").status == "completed"
    assert serving.run_head("run-1").status == "completed"


def test_there_must_be_something_to_answer(serving: Store) -> None:
    assert refused(serving, admission(resume=answers("a"))).code == "resume_refused"
    serving.admit_run(admission(resume=[])).wait()
    assert refused(serving, admission("run-2", resume=answers("a"))).code == "thread_busy"


def test_the_same_answers_again_give_the_run_that_was_made_of_them(serving: Store) -> None:
    serving.admit_run(admission()).wait()
    serving.end_run(interrupted("run-1", 1, "a", "b")).wait()
    given = answers("a", "b", payload={"x": 1, "y": [None]})
    serving.admit_run(admission("run-2", resume=given)).wait()
    same = list(reversed(answers("a", "b", payload={"y": [None], "x": 1})))

    def repeated(run_id: str) -> None:
        admitted = serving.admit_run(admission(run_id, resume=same, request=b"whatever")).wait()
        assert (admitted.created, admitted.run.run_id) == (False, "run-2")

    repeated("run-3")
    assert refused(serving, admission("run-3", resume=answers("a", "b"))).code == "thread_busy"
    serving.end_run(interrupted("run-2", 1, "c")).wait()
    repeated("run-2")
    assert serving.admit_run(admission("run-4", resume=answers("c"))).wait().created
    repeated("run-3")
    serving.end_run(ending("run-4")).wait()
    repeated("run-3")
    assert refused(serving, admission("run-5", "thread-2", resume=same)).code == "resume_refused"


def test_the_same_answers_to_a_new_question_are_new(serving: Store) -> None:
    """An agent may give all its interrupts one id."""
    serving.admit_run(admission()).wait()
    serving.end_run(interrupted("run-1", 1, "ok?")).wait()
    serving.admit_run(admission("run-2", resume=answers("ok?"))).wait()
    serving.end_run(interrupted("run-2", 1, "ok?")).wait()
    assert serving.admit_run(admission("run-3", resume=answers("ok?"))).wait().created
    assert serving.admit_run(admission("run-4", resume=answers("ok?"))).wait().run.run_id == "run-3"


@pytest.mark.parametrize(
    ("expires_at", "expired"),
    [
        ("2026-09-21T14:13:20Z", True),
        ("2026-09-21T16:13:20+02:00", True),
        ("2026-09-21T14:13:19.999", True),
        ("2026-09-21T14:13:20.001Z", False),
        ("2026-09-21T14:13:20-01:00", False),
        ("never", False),
        ("", False),
        ("99999-01-01T00:00:00Z", False),
        ("\ud800", False),
    ],
)
def test_an_expired_interrupt_can_only_be_cancelled(serving: Store, expires_at: str, expired: bool) -> None:
    serving.admit_run(admission()).wait()
    serving.end_run(interrupted(interrupts=[Interrupt("a", "why", expires_at=expires_at)])).wait()
    late = admission("run-2", resume=answers("a"))
    if not expired:
        assert serving.admit_run(late).wait().created
        return
    assert refused(serving, late).code == "resume_refused"
    late.resume = [type(entry)("a", "cancelled") for entry in answers("a")]
    assert serving.admit_run(late).wait().created


def test_ids_with_unusual_characters_are_kept(serving: Store) -> None:
    for number, odd in enumerate(("\N{GRINNING FACE}" * 256, "a\nb", "'; --", '"%s"', " ", "[1]")):
        wanted = admission(f"{number}{odd}"[:256], f"{odd}", idempotency_key=odd, agent=odd)
        run = serving.admit_run(wanted).wait().run
        assert serving.served_run(wanted.run_id) == run
        assert serving.thread_runs(odd) == [run]
    for odd in ("", "a\0b", "\udfff", "x" * 1025):
        for fields in ({"run_id": odd}, {"thread_id": odd}, {"agent": odd}, {"idempotency_key": odd}):
            with pytest.raises(SeatrialError) as caught:
                serving.admit_run(admission(**fields))
            assert caught.value.code == "unstorable"


def test_a_server_that_never_began_cannot_admit(store: Store) -> None:
    with pytest.raises(SeatrialError) as caught:
        store.admit_run(admission())
    assert caught.value.code == "not_found"


def test_a_refused_admission_costs_the_others_nothing(serving: Store) -> None:
    """They are committed together all the same; only a collision with another process parts them."""
    serving.admit_run(admission()).wait()
    receipts = [serving.append_events("run-1", [b"%d" % number]) for number in range(50)]
    busy = serving.admit_run(admission("run-2"))
    wrong = serving.append_events("run-1", [b"x"], first=7)
    receipts += [serving.append_events("run-1", [b"%d" % number]) for number in range(50, 100)]
    assert [receipt.wait() for receipt in receipts] == list(range(1, 101))
    for receipt, code in ((busy, "thread_busy"), (wrong, "sequence_conflict")):
        with pytest.raises(SeatrialError) as caught:
            receipt.wait()
        assert caught.value.code == code


def test_two_servers_race_for_a_thread_and_one_gets_it(postgres_url: str) -> None:
    with open_store(postgres_url) as port, open_store(postgres_url) as starboard:
        claims = [port.begin_serving("port", NOW), starboard.begin_serving("starboard", NOW)]
        for turn in range(30):
            receipts = [
                store.admit_run(admission(f"{name}-{turn}", f"thread-{turn}", server_id=name))
                for store, name in ((port, "port"), (starboard, "starboard"))
            ]
            results = [result(receipt) for receipt in receipts]
            [won] = [one.run.run_id for one in results if isinstance(one, Admitted)]
            [lost] = [one for one in results if isinstance(one, SeatrialError)]
            assert (lost.code, lost.details) == ("thread_busy", {"runId": won})
            assert [run.run_id for run in port.thread_runs(f"thread-{turn}")] == [won]
        for claim in claims:
            claim.close()


def test_two_servers_that_get_the_same_request_make_one_run(postgres_url: str) -> None:
    with open_store(postgres_url) as port, open_store(postgres_url) as starboard:
        claims = [port.begin_serving("port", NOW), starboard.begin_serving("starboard", NOW)]
        for turn in range(40):
            thread = f"thread-{turn}" if turn % 2 else None
            wanted = [
                admission(f"{name}-{turn}", thread or f"{name}-{turn}", server_id=name, idempotency_key=f"key-{turn}")
                for name in ("port", "starboard")
            ]
            receipts = [port.admit_run(wanted[0]), starboard.admit_run(wanted[1])]
            admitted = [receipt.wait() for receipt in receipts]
            assert admitted[0].run == admitted[1].run
            assert [one.created for one in admitted].count(True) == 1
        for claim in claims:
            claim.close()


CUT_OFF_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def test_an_admission_whose_connection_breaks_is_made_once(postgres_url: str) -> None:
    with open_store(postgres_url) as store, psycopg.connect(postgres_url, autocommit=True) as admin:
        presence = store.begin_serving("server-1", NOW)
        for turn in range(15):
            receipt = store.admit_run(admission(f"run-{turn}", f"thread-{turn}", idempotency_key=f"key-{turn}"))
            admin.execute(CUT_OFF_OTHERS)
            assert receipt.wait().created
            end = store.end_run(ending(f"run-{turn}"))
            admin.execute(CUT_OFF_OTHERS)
            assert end.wait() is True
            assert len(store.events(f"run-{turn}")) == 2
        presence.close()


class Threads(RuleBasedStateMachine):
    """What a store says of admissions and endings, against the same in a few lines of Python."""

    store: Store

    @initialize()
    def begin(self) -> None:
        self.prefix = str(next(NUMBERS))
        self.count = 0
        self.held: dict[str, tuple[str, frozenset[str] | None]] = {}
        """Thread -> the run that holds it, and its open interrupts once it has ended."""
        self.keys: dict[str, tuple[str, bytes]] = {}
        self.resumed: dict[tuple[str, frozenset[str]], str] = {}
        self.order: dict[str, list[str]] = {}

    @rule(
        thread=st.sampled_from("tu"),
        key=st.sampled_from([None, None, "k", "l"]),
        request=st.sampled_from([b"1", b"2"]),
        resume=st.sampled_from([None, None, frozenset("a"), frozenset("ab"), frozenset("c")]),
    )
    def ask(self, thread: str, key: str | None, request: bytes, resume: frozenset[str] | None) -> None:
        self.count += 1
        run_id = f"{self.prefix}-{self.count}"
        expected = self._expected(thread, key, request, resume) or run_id
        wanted = admission(
            run_id,
            f"{self.prefix}-{thread}",
            idempotency_key=f"{self.prefix}-{key}" if key else None,
            request=request,
            resume=answers(*sorted(resume)) if resume is not None else None,
        )
        admitted = result(self.store.admit_run(wanted))
        if isinstance(admitted, SeatrialError):
            assert admitted.code == expected
            return
        assert (admitted.run.run_id, admitted.created) == (expected, expected == run_id)
        if admitted.created:
            self.held[thread] = run_id, None
            self.order.setdefault(thread, []).append(run_id)
            if resume is not None:
                self.resumed[thread, resume] = run_id
            if key is not None:
                self.keys[key] = run_id, request

    def _expected(self, thread: str, key: str | None, request: bytes, resume: frozenset[str] | None) -> str | None:
        """The id of an earlier run, or an error's code; None when a new run is to be made."""
        if key in self.keys:
            run_id, before = self.keys[key]
            return run_id if before == request else "idempotency_conflict"
        run, questions = self.held.get(thread, ("", frozenset()))
        if run and questions is None:
            problem = "thread_busy"
        elif (resume or frozenset()) != questions:
            problem = "resume_refused"
        else:
            return None
        return self.resumed.get((thread, resume), problem) if resume is not None else problem

    @precondition(lambda self: any(questions is None for _, questions in self.held.values()))
    @rule(data=st.data(), ids=st.sampled_from([frozenset[str](), frozenset("a"), frozenset("ab"), frozenset("c")]))
    def end(self, data: st.DataObject, ids: frozenset[str]) -> None:
        active = [thread for thread, (_, questions) in self.held.items() if questions is None]
        thread = data.draw(st.sampled_from(active))
        run_id = self.held.pop(thread)[0]
        end = interrupted(run_id, 1, *sorted(ids)) if ids else ending(run_id)
        assert self.store.end_run(end).wait() is True
        assert self.store.end_run(end).wait() is False
        if ids:
            self.held[thread] = run_id, ids

    def teardown(self) -> None:
        if not hasattr(self, "order"):
            return
        for thread, runs in self.order.items():
            stored = self.store.thread_runs(f"{self.prefix}-{thread}")
            assert [run.run_id for run in stored] == runs
            run, questions = self.held.get(thread, (None, None))
            for one in stored:
                expected = ("running" if questions is None else "input_required") if one.run_id == run else "completed"
                assert one.status == expected


NUMBERS = iter(range(1_000_000))


def test_admission_is_what_a_few_lines_of_python_say(shared_store: Store) -> None:
    class Here(Threads):
        store = shared_store

    presence = shared_store.begin_serving("server-1", NOW)
    run_state_machine_as_test(
        Here,
        settings=settings(
            max_examples=40, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
    presence.close()
