"""Measures the relay against a bare one: the same audio, the same service, the same machine, in turn."""
