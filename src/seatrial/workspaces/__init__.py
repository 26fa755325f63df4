"""The folders that agents work in: copied for each attempt, compared with their baseline afterwards."""

from seatrial.workspaces.workspaces import Workspaces, workspace_problem

__all__ = ["Workspaces", "workspace_problem"]
