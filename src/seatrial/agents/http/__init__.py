"""Agents behind HTTP: the dispatch contract, APIs of models, A2A, and JSON of any shape."""
