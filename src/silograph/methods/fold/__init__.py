"""A union of groups of nodes: a million nodes without a bucket for each pair."""
