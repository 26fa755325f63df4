"""Tests of suites, and what they share."""
