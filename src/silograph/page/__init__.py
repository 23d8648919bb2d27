"""Pages that people read: one file each, without network, in light and dark."""

from silograph.page.result import ready, result_page, save_page

__all__ = ["ready", "result_page", "save_page"]
