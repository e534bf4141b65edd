"""CUDA C++ for sm_90a from lowered IR and a placement: the device kernel and its host wrapper.

unit        all functions of a file, and what precedes its first line
plan        what both sides of the launch agree on; made by planning (maps, parameters, grid) and copies (boxes, pieces)
host        the wrapper; tensormap: the dimensions of a tensor's views as the copy engine sees them
device      the kernel's frame: names, storage (addresses, mbarriers), roles (one branch per warpgroup)
statements  the bodies of roles; rings (slots that count round), events, transfer (copies, calls), mma, fragments
stress      builds for stress tests: delays, and NaN over what is dead
shared      byte offsets of shared tiles; expressions; wgmma: the instructions' wrappers; writer: lines of text
"""
