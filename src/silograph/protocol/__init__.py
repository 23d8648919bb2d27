"""Sans-IO state machines: integers and messages; no graph, no ε, no sockets, no clock."""
