"""Agents behind HTTP that take the dispatch envelope and answer with an agent response."""
