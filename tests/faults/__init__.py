"""Faults that tests of several packages put between two programs."""
