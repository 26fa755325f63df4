"""The corpus of honest verdicts: what agents did, how they wrote it down, and what must be said of it."""
