"""Intervals of rates, differences of paired experiments, and how small a difference can be found."""
