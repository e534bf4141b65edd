"""CUDA C++ for sm_90a from lowered IR and a placement: the device kernel and its host wrapper."""
