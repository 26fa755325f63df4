"""Agents that are programs, started for each case or once for all."""
