"""What `import seatrial` gives: suites of Python objects, run from a program, a notebook or a test."""
