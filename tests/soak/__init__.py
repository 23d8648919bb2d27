"""`make soak`: faults of a deployment, each in a deployment of its own with a real broker.

- ``faults`` of parties, lines and the broker, in every phase of every method: ``tests/nats/cases``;
- ``operators``: what people and machines do to a deployment, on the real commands;
- ``table``: what was expected, and what happened.

Lines are made slow and lossy by a proxy of this project (``tests/support/slow_line``), because the
kernel's own way needs rights and modules that few machines give. Each connection has the rate and
the latency in either direction. TCP repeats a lost packet, so what a party sees of the loss of 5 %
is that everything behind the packet comes 0.25 s later, for one packet of 1,400 bytes in twenty.
"""
