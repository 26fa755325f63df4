"""Private plumbing that every package may use and that knows none of them: JSON, files, threads, printable text."""
