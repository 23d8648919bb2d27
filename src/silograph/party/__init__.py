"""What one party keeps and decides: keys, roster, policy, store."""
