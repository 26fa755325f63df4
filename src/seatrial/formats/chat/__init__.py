"""What the readers and writers of chat messages share, whoever's messages they are."""
