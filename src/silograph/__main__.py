"""``python -m silograph``."""

import sys

from silograph.cli import main

if __name__ == "__main__":
    sys.exit(main())
