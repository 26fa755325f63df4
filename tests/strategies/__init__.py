"""Hypothesis strategies that the tests of several packages share."""
