"""Noise and its privacy loss, without messages, input or output."""
