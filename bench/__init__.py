"""Speed as ratios against peers and floors; `python -m bench` measures, prints and writes RESULTS.md."""
