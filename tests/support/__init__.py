"""What several tests and benchmarks build on."""
