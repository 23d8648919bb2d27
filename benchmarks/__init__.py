"""Measurements, each beside a peer or the limit of the machine; run by ``make bench-…``."""
