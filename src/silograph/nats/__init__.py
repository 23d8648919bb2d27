"""Runs over NATS JetStream: the broker carries, and nobody trusts the carrier."""
