"""Tests of carrying an experiment out."""
