"""Sans-IO state machines: vectors of integers and messages; no graph, no ε, no sockets, no clock."""
