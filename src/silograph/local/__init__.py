"""All parties in one process."""
