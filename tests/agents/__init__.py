"""Tests of the agent kinds, with what they share in `setting`."""
