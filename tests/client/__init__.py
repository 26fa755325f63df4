"""Tests of the client, and the service that they talk to."""
