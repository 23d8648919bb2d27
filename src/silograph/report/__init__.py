"""Pages that people read: one file each, without network, in light and dark."""

from silograph.report.result import page, ready, save_page

__all__ = ["page", "ready", "save_page"]
