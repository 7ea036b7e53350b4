"""The papers' experiments: data sets, methods, tables and figures, crossed by `python -m experiments.run`."""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # BLAS reads it when numpy is first imported
