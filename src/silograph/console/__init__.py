"""The web console of a party, for those who must answer for its studies."""
