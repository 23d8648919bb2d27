"""Runs with all parties in one process."""
