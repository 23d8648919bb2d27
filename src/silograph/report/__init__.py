"""Pages that people read: one file each, without network, in light and dark."""
