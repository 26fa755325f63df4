"""The one way to run an agent, for experiments, the run service and tests.

A run is an *exchange* with the agent: a request and its reply, in one or more attempts, which are a policy of the
caller. For each, `Driver.ask` opens the run's session of the world, asks the agent, and brings its reply within bounds
that the agent cannot lift. Whatever the agent sends meanwhile goes through the run's `Recorder`. What all of it comes
to is said by `conclude_run`.
"""

from seatrial.driver.clock import Clock, SystemClock
from seatrial.driver.conclusion import RunSpec, conclude_run
from seatrial.driver.exchange import Driver, ExchangeEnd, internal_fault
from seatrial.driver.recorder import EventSink, Recorder
from seatrial.driver.recording import Recording, recordable, run_error
from seatrial.driver.redaction import Redaction

__all__ = [
    "Clock",
    "Driver",
    "EventSink",
    "ExchangeEnd",
    "Recorder",
    "Recording",
    "Redaction",
    "RunSpec",
    "SystemClock",
    "conclude_run",
    "internal_fault",
    "recordable",
    "run_error",
]
