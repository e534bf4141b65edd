"""The Tawa rows of Table 2: Triton kernels, compiled and run in child processes."""
