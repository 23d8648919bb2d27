"""The methods: each one composes queries with protocols, without I/O."""
