"""What noise costs: no messages, no input or output."""
