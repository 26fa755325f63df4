"""Parts of a run, over real HTTP: ranges, find, events, the body, downloads, keys."""

from __future__ import annotations

import pytest
from strategies import records

from explorer.test_routes import BROWSER, fetched
from explorer.test_transcript import recorded, turns
from seatrial.runs import Attempt, RunKey
from seatrial.store import Store, address
from seatrial.transcript import AssistantMessage, StopReason, TextBlock, ThinkingBlock, UserMessage

PART = {**BROWSER, "Seatrial-Fragment": "1"}


@pytest.fixture
def filled(store: Store) -> Store:
    store.create_experiment(records.experiment(), records.cases(5))
    return store


def test_a_range_is_a_part_and_without_script_a_page(filled: Store) -> None:
    messages, steps = turns(100)
    run = recorded(filled, *messages, steps=steps)
    path = f"/runs/{run.run_id}/items?from=101&count=20"
    status, headers, text = fetched(filled, path, PART)
    assert (status, headers["Seatrial-Fragment"]) == (200, "1")
    assert 'id="messages-101"' in text
    assert "<html" not in text
    status, headers, text = fetched(filled, path)
    assert "Seatrial-Fragment" not in headers
    assert "<h1>Items 101 to 120 of 201</h1>" in text
    assert "Show more items" in text


def test_ranges_of_ended_runs_are_kept_and_those_of_running_ones_are_not(filled: Store) -> None:
    run = recorded(filled, UserMessage("a"))
    _, headers, _ = fetched(filled, f"/runs/{run.run_id}/items", PART)
    assert headers["Cache-Control"] == "private, no-cache"
    tag = headers["ETag"]
    status, _, text = fetched(filled, f"/runs/{run.run_id}/items", {**PART, "If-None-Match": tag})
    assert (status, text) == (304, "")
    # A page has more in it than the part: who looks at it, for one.
    status, headers, _ = fetched(filled, f"/runs/{run.run_id}/items", {**BROWSER, "If-None-Match": tag})
    assert (status, headers["Cache-Control"]) == (200, "no-store")
    _, headers, _ = fetched(filled, f"/runs/{run.run_id}/items?v=1", PART)
    assert "immutable" in headers["Cache-Control"]
    filled.record_verdicts(run.run_id, [records.verdict("failed", key="key-2")], records.grade("failed")).wait()
    _, headers, _ = fetched(filled, f"/runs/{run.run_id}/items", PART)
    assert headers["ETag"] != tag
    filled.begin_run("exp-1", RunKey("crew", "case-3", 1), "running").wait()
    _, headers, _ = fetched(filled, "/runs/running/items", PART)
    assert headers["Cache-Control"] == "no-store"
    assert "ETag" not in headers


def test_find_looks_through_the_whole_run_and_leads_to_the_places(filled: Store) -> None:
    messages, steps = turns(150, "nothing here")
    messages[240] = AssistantMessage([TextBlock("the <needle> is here")], StopReason.END_TURN)
    run = recorded(filled, *messages, steps=steps)
    status, _, text = fetched(filled, f"/runs/{run.run_id}/find?q=%3Cneedle%3E")
    assert status == 200
    assert f'href="/runs/{run.run_id}?at=%2Fmessages%2F240%2Fcontent%2F0%2Ftext#messages-240"' in text
    assert '<mark class="hit">&lt;needle&gt;</mark>' in text
    _, _, text = fetched(filled, f"/runs/{run.run_id}/find?q=nothere", PART)
    assert "Nothing in the whole run" in text


def test_the_event_log_is_paged_and_can_be_narrowed_to_types(filled: Store) -> None:
    run = records.run()
    events = [b'{"type":"%s","n":%d}' % (b"TEXT_MESSAGE_CONTENT" if n % 10 else b"STEP_STARTED", n) for n in range(450)]
    filled.record_run(run, events=events).wait()
    path = f"/runs/{run.run_id}/events"
    _, _, text = fetched(filled, path)
    assert (text.count('<tr id="e'), "450\N{NO-BREAK SPACE}events" in text) == (200, True)
    assert f"{path}?after=199" in text
    _, _, text = fetched(filled, f"{path}?after=399&types=STEP_STARTED")
    assert [number for number in range(450) if f'id="e{number}"' in text] == [400, 410, 420, 430, 440]
    _, _, text = fetched(filled, f"{path}?types=STEP_STARTD")
    assert "No type of event is called “STEP_STARTD”" in text


def test_a_body_is_a_file_that_no_browser_takes_for_a_page(filled: Store) -> None:
    bodies = [b"<script>first</script>", b"<script>second</script>"]
    attempts = [
        Attempt(number=number, started_at=1, duration_ms=1.0, body_hash=address(body))
        for number, body in enumerate(bodies, 1)
    ]
    run = records.run(attempts=attempts, body=bodies[-1])
    filled.record_run(run, bodies=bodies).wait()
    status, headers, text = fetched(filled, f"/runs/{run.run_id}/body")
    assert (status, text) == (200, "<script>second</script>")
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Disposition"].startswith("attachment;")
    assert headers["Content-Security-Policy"].startswith("sandbox;")
    assert fetched(filled, f"/runs/{run.run_id}/body?attempt=1")[2] == "<script>first</script>"
    assert fetched(filled, f"/runs/{run.run_id}/body?attempt=3")[0] == 404


def test_a_download_says_first_what_its_format_loses(filled: Store) -> None:
    said = AssistantMessage([ThinkingBlock("hmm"), TextBlock("hi")], StopReason.END_TURN, error_message="late")
    run = recorded(filled, UserMessage("a"), said)
    path = f"/runs/{run.run_id}/download"
    _, headers, text = fetched(filled, path)
    assert "Content-Disposition" not in headers
    assert "?format=transcript" in text
    _, headers, text = fetched(filled, f"{path}?format=openai")
    assert "Content-Disposition" not in headers
    assert "cannot carry all of this run" in text
    _, headers, text = fetched(filled, f"{path}?format=openai&losses=accepted")
    assert headers["Content-Disposition"].startswith("attachment;")
    assert text.startswith(("{", "["))
    _, _, text = fetched(filled, f"{path}?format=opena")
    assert "Did you mean “openai”?" in text


def test_keys_have_a_page_and_a_part(filled: Store) -> None:
    _, _, text = fetched(filled, "/help/keys")
    assert "<kbd>?</kbd>" in text
    assert "<html" not in fetched(filled, "/help/keys", PART)[2]


def test_a_run_that_is_not_there_has_no_parts(filled: Store) -> None:
    for part in ("items", "find?q=x", "events", "body", "download?format=openai", "text/answer", "image/messages/0"):
        assert fetched(filled, f"/runs/nobody/{part}")[0] == 404, part
