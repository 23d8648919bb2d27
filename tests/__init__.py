"""The tests. Several workers share the cores, so each multiplies its matrices with one thread.

More threads would wait for a core and burn it meanwhile: small products take thirty times as long.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is loaded, which comes later
