"""Tests of the run service, and what they share."""
