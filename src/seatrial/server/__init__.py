"""The run service: runs over HTTP, and streams that survive the connection they were read on."""
