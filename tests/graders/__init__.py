"""Tests of graders, and what they share."""
