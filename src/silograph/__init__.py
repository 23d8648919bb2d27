"""Silograph: statistics of a graph that no one holds, under edge differential privacy."""
