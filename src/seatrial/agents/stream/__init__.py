"""Agents that take an AG-UI `RunAgentInput` and answer with a stream of events."""
