"""**Fan-out**: 1,000 events of one run to 1, 100 and 1,000 subscribers, from the moment when the first event is there
to the moment when the last subscriber has the last one, by the clock on the wall; the times are those of one delivered
event. Server and subscribers have a process each, and every byte that arrives is checked.

Seatrial is `seatrial serve` as it is: the events come from an agent, are verified, stored in SQLite, and published
once they are committed. The floor is a plain asyncio server on uvloop that writes bytes prepared beforehand to one
transport after the other, and does nothing else. Both get the events one at a time, as fast as they take them: the
floor writes each one when it is there, Seatrial sends together what was committed together. Because the floor pays for
many small writes then, both are shown as well with 100 events at a time, and with all at once, where the floor writes
everything in one piece and Seatrial still has to store it first.
"""

from __future__ import annotations

from bench.clock import Race
from bench.figure import Figure, Level, speed
from bench.streams import FLOOR, deliver

EVENTS = 1000
ROUNDS = 5


def measure() -> list[Figure | Level]:
    figures: list[Figure | Level] = []
    resident = []
    for subscribers in (1, 100, 1000):
        for group in (1, 100, EVENTS):
            samples: dict[str, list[float]] = {"seatrial": [], FLOOR: []}
            for _ in range(ROUNDS):
                for name, taken in samples.items():
                    delivered = deliver(name, subscribers, EVENTS, group)
                    taken.append(delivered.spent_ns / EVENTS / subscribers)
                    if name == "seatrial" and subscribers == 1000:
                        resident.append(delivered.resident)
            come = {1: "one at a time", EVENTS: "all at once"}.get(group, f"{group} at a time")
            whom = "1 subscriber" if subscribers == 1 else f"{subscribers:,} subscribers"
            work = f"{EVENTS:,} events, {come}, to {whom}"
            bar = 0.5 if group == 1 and subscribers > 1 else None
            figures.append(speed(Race(samples), work, FLOOR, at_least=bar))
    figures.append(Level("memory of the server with 1,000 subscribers", max(resident), 150e6, "bytes"))
    return figures
