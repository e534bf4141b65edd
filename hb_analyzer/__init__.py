"""Signal-aware liveness of shared-memory buffers in warp-specialized kernels.

``analyse(program)`` says which buffers of a :class:`~hb_analyzer.model.Program` may share addresses, reports deadlocks,
event overruns and races, and places the buffers; ``explain_pair`` adds the proof or a counterexample for one pair;
``place`` is the placement alone. Standard library only.
"""

from hb_analyzer.decide import analyse, explain_pair
from hb_analyzer.placement import place

__all__ = ["analyse", "explain_pair", "place"]
