"""Runs over NATS JetStream: the broker carries, and nobody trusts the carrier."""

from silograph.extras import library

library("nats", "deployments")
