"""Where machines meet the world: files, clocks, processes and the budget ledger."""
