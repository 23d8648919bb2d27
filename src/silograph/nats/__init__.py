"""Runs over NATS JetStream. The broker carries messages, and no party trusts it."""
