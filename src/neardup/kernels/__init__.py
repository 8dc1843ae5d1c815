"""Inner loops on NumPy arrays, compiled by Numba. A file here imports nothing of ours.

Numba's disk cache notices an edit only in the file of the kernel itself, so a helper shared between files would leave
stale kernels behind.
"""
