"""How a store of one version becomes one of the next. Each revision says what the tables were then, in full."""
