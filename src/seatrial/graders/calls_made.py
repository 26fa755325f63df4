"""`calls` and `never_calls`: the two commonest things to say of tool calls, in short."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from seatrial.graders.calls import BasisWanted
from seatrial.graders.grader import Check, Grader
from seatrial.graders.tool_trajectory import ToolTrajectory

ToolName = Annotated[str, Meta(min_length=1)]


class CallsMade(Grader):
    """Whether the agent called a tool, at least once, with at least these arguments. Errored where it is not among the
    calls that are known, and not all are."""

    kind: ClassVar[str] = "calls"

    tool: ToolName
    """The tool's name, or a glob."""
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    """Arguments that the call has, perhaps among others; values as in `tool_trajectory`."""
    basis: BasisWanted = "any"
    """As in `tool_trajectory`."""

    def prepare(self) -> Check:
        item: dict[str, Any] = {"tool": self.tool}
        if self.args:
            item |= {"args": self.args, "args_match": "superset"}
        return ToolTrajectory(mode="superset", expected=[item], basis=self.basis).prepare()


class NeverCalls(Grader):
    """Whether the agent called none of some tools. Errored where not all of its calls are known."""

    kind: ClassVar[str] = "never_calls"

    tools: Annotated[list[ToolName], Meta(min_length=1)]
    """The tools' names, or globs; `*` for any tool at all."""
    basis: BasisWanted = "any"
    """As in `tool_trajectory`."""

    def prepare(self) -> Check:
        # Forbidden besides, so that one such call is a score of 0: no share of the tools makes up for it.
        maximums = dict.fromkeys(self.tools, 0)
        return ToolTrajectory(
            mode="any_order", maximums=maximums, forbidden=list(self.tools), basis=self.basis
        ).prepare()
