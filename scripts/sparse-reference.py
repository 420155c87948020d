#!/usr/bin/env python3
"""Writes the files under tests/data/ that the tests of the reader of SciPy's .npz read: needs NumPy and SciPy.

    python scripts/sparse-reference.py
"""

import pathlib

import numpy as np
from scipy import sparse

folder = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data"
rows = np.array([6, 0, 2, 2, 6, 3])
columns = np.array([4, 1, 0, 3, 0, 2])
values = np.array([0.5, -1.0, 2.0, 3.25, 4.0, -0.125])
matrix = sparse.coo_array((values, (rows, columns)), shape=(7, 5))

sparse.save_npz(folder / "sparse-csr.npz", matrix.tocsr().astype(np.float32))
sparse.save_npz(folder / "sparse-csc.npz", matrix.tocsc())
sparse.save_npz(folder / "sparse-coo.npz", matrix.astype(np.float32), compressed=False)
sparse.save_npz(folder / "sparse-bsr.npz", matrix.tobsr(blocksize=(1, 1)))
# Column numbers in no order, and one twice: 2 and 0.25 in row 1.
unsorted = sparse.csr_array(
    (np.array([1, 2, 3, 0.25], np.float16), np.array([3, 4, 0, 4]), np.array([0, 1, 4])), shape=(2, 5)
)
sparse.save_npz(folder / "sparse-unsorted.npz", unsorted)
# What SciPy makes of counts.
sparse.save_npz(folder / "sparse-counts.npz", sparse.csr_array(np.array([[0, 3], [200, 0]], np.int64)))
