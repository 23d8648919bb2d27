"""Methods compose queries with protocols, without I/O."""
