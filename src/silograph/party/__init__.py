"""The files of one party and the decisions it makes: keys, roster, policy, store."""
