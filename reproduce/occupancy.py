"""How many CTAs of a kernel fit on one SM of compute capability 9.0, by the rules of the CUDA occupancy calculator.

The rules and the constants are those of ``cuda_occupancy.h`` (NVIDIA's calculator, part of the CUDA runtime headers);
a test compiles that header and compares.
"""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32
MAX_WARPS = 64
MAX_CTAS = 32
SUB_PARTITIONS = 4
REGISTERS_PER_SM = 65536
REGISTER_UNIT = 256  # registers are given to warps in units of this
MAX_REGISTERS = 255  # per thread
KIB = 1024
SHARED_UNIT = 128
SHARED_RESERVED = 1 * KIB  # per CTA, for the system
SHARED_PER_BLOCK = 227 * KIB  # the most that one CTA may ask for
# Shared memory and L1 are one memory; the driver can split it in these ways (KiB of shared memory).
SHARED_CONFIGS = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)


@dataclass(frozen=True)
class Occupancy:
    """CTAs per SM that each resource allows; ``ctas`` is the smallest."""

    registers: int
    shared: int
    warps: int
    blocks: int = MAX_CTAS

    @property
    def ctas(self) -> int:
        return min(self.registers, self.shared, self.warps, self.blocks)

    @property
    def bound(self) -> str:
        """What limits the kernel: ``smem``, ``registers``, ``smem, registers``, ``warps`` or ``blocks``."""
        limits = (("smem", self.shared), ("registers", self.registers), ("warps", self.warps), ("blocks", self.blocks))
        names = [name for name, limit in limits if limit == self.ctas]
        return ", ".join(name for name in names[:2])


def occupancy(registers: int, threads: int, shared: int, carveout_kib: int | None = None) -> Occupancy:
    """Occupancy of a kernel with ``registers`` per thread, ``threads`` per CTA and ``shared`` bytes (static + dynamic).

    ``carveout_kib`` is the preferred shared memory of the SM; None is the driver's own choice, which fits most CTAs.
    """
    warps = _ceil(threads, WARP)
    return Occupancy(
        registers=_register_limit(registers, warps),
        shared=_shared_limit(shared, carveout_kib),
        warps=MAX_WARPS // warps if threads <= 1024 else 0,
    )


def _register_limit(registers: int, warps: int) -> int:
    per_warp = _ceil(registers * WARP, REGISTER_UNIT) * REGISTER_UNIT
    if registers > MAX_REGISTERS or per_warp * _ceil(warps, SUB_PARTITIONS) * SUB_PARTITIONS > REGISTERS_PER_SM:
        return 0
    # Each sub-partition has a quarter of the registers, and a warp lives in one of them.
    per_sub_partition = REGISTERS_PER_SM // SUB_PARTITIONS // per_warp
    return per_sub_partition * SUB_PARTITIONS // warps


def _shared_limit(shared: int, carveout_kib: int | None) -> int:
    allocated = _ceil(shared + SHARED_RESERVED, SHARED_UNIT) * SHARED_UNIT
    if allocated > SHARED_PER_BLOCK + SHARED_RESERVED:
        return 0
    preferred = shared_config(SHARED_CONFIGS[-1] if carveout_kib is None else carveout_kib)
    # A preference that does not fit one CTA gives way to the smallest split that does.
    per_sm = max(preferred, shared_config(_ceil(allocated, KIB)))
    return per_sm * KIB // allocated


def shared_config(kib: int) -> int:
    """The split that the driver takes for a wish of ``kib``: the next larger one. ValueError above the largest."""
    for config in SHARED_CONFIGS:
        if kib <= config:
            return config
    raise ValueError(f"an SM has {SHARED_CONFIGS[-1]} KiB of shared memory, {kib} were asked for")


def _ceil(value: int, unit: int) -> int:
    return -(-value // unit)
