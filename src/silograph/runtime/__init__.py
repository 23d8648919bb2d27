"""Where machines meet the world: entropy, ledgers, progress, simulation."""
