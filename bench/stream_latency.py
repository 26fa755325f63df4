"""**Latency of a stream**: 500 events of one run, one every 10 ms, to 100 subscribers. The figure is the time from the
moment when an event is there to the moment when a subscriber has it, at the 99th percentile over all events and all
subscribers. `seatrial serve` stores and commits each event in between; the floor writes prepared bytes (see fan-out).
"""

from __future__ import annotations

from bench.clock import Race
from bench.figure import Figure, cost
from bench.streams import FLOOR, Delivered, deliver

EVENTS = 500
PAUSE_MS = 10
SUBSCRIBERS = 100
ROUNDS = 5


def measure() -> list[Figure]:
    samples: dict[str, list[float]] = {"seatrial": [], FLOOR: []}
    for _ in range(ROUNDS):
        for name, taken in samples.items():
            taken.append(percentile(deliver(name, SUBSCRIBERS, EVENTS, 1, PAUSE_MS), 0.99))
    work = f"event of a paced stream to {SUBSCRIBERS} subscribers, 99th percentile"
    return [cost(Race(samples), work, FLOOR, at_most=2)]


def percentile(delivered: Delivered, share: float) -> float:
    waited = sorted(
        time - said for said, times in zip(delivered.said, delivered.arrived, strict=True) for time in times
    )
    return waited[int(len(waited) * share)]
