"""The subcommands of `seatrial`, a module each: `configure` declares its options, `run` does its work."""
