"""What a noisy answer costs: channels, views and certified epsilons. No graphs, no messages."""
