"""The sentence of a running run."""

from __future__ import annotations

from seatrial.reports.sentences import running_sentence


def test_a_running_run_is_compared_with_what_others_took_and_with_its_limit() -> None:
    def said(*took: float, elapsed: float | None = 19_400, limit: float | None = 60) -> str:
        return running_sentence(elapsed, took, "Runs of this case", limit)

    assert said() == "19.4 s so far. The limit is 1 m 00 s."
    assert said(limit=None) == "19.4 s so far."
    assert said(22_000) == "19.4 s so far. Runs of this case took 22.0 s (one has ended); the limit is 1 m 00 s."
    assert "took 20.0 s to 22.0 s (2 have ended)" in said(22_000, 20_000)
    assert "took 3.0 s (median of 5), 5.0 s at most" in said(*[1000.0 * n for n in range(1, 6)])
    assert "took 11.0 s (median of 20), 19.0 s (95th percentile)" in said(*[1000.0 * n for n in range(1, 21)])
    assert said(elapsed=None, limit=None) == "It is running."
