"""What an agent acts on while it is tested: the tool proxy, and the tools behind it."""
