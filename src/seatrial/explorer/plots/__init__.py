"""Plots as SVG, made here and not in the browser: each has words for those who do not see it."""
