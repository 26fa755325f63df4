"""The state of a world: entities and flags in versions that share what did not change, and questions about them.

Pure: nothing here does I/O, reads a clock or draws a random number.
"""
