"""Runs that were recorded before, for grading without running."""
