"""Agents that are Python functions."""
