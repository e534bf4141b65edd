"""The CUTLASS rows: shared storage as a struct and as a union, what it costs, and whether it is right."""
