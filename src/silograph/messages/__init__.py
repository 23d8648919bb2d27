"""Signed messages and state machines, without input or output."""
