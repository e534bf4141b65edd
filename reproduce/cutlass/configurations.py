"""The kernels: schedule, tile, stages and output type of each, and how many tiles one CTA of it computes."""

from __future__ import annotations

import enum
from dataclasses import dataclass

SIZES = (1024, 2048, 4096)  # square problems at which the kernels are run
TILE_K = 64  # elements of one step of the main loop
PIECE_COLUMNS = 32


class Schedule(enum.Enum):
    """CUTLASS' warp-specialized schedules for sm_90; the value is the type's name in ``kernels/cutlass/kernel.hpp``."""

    COOPERATIVE = "Cooperative"
    PING_PONG = "PingPong"
    NON_PERSISTENT = "NonPersistent"


class Epilogue(enum.Enum):
    """What the epilogue reads and writes, and whether it uses its source C.

    With C and D of one width CUTLASS stages both in the same buffers, and synchronises differently; see ``model.py``.
    """

    FLOAT_D = "FloatD"  # C void, D float
    HALF_CD = "HalfCD"  # C and D half


class Storage(enum.Enum):
    """How main loop and epilogue storage lie in shared memory."""

    STRUCT = "struct"
    UNION = "union"


@dataclass(frozen=True)
class Configuration:
    """One kernel. ``name`` is that of its constants in ``sizes.cu``, ``row`` its name in tables."""

    name: str
    schedule: Schedule
    tile_m: int
    tile_n: int
    stages: int
    epilogue: Epilogue = Epilogue.FLOAT_D
    row: str = ""

    @property
    def label(self) -> str:
        return self.row or self.name

    @property
    def storages(self) -> tuple[Storage, ...]:
        """The builds that exist: the non-persistent kernel is a union in CUTLASS itself."""
        if self.schedule is Schedule.NON_PERSISTENT:
            return (Storage.UNION,)
        return (Storage.STRUCT, Storage.UNION)

    @property
    def piece_rows(self) -> int:
        """Rows of a piece of a tile, as the epilogue stores it; its columns are PIECE_COLUMNS (EpilogueTileAuto)."""
        return min(self.tile_m, 128 if self.schedule is Schedule.COOPERATIVE else 64)

    @property
    def pieces(self) -> int:
        """Pieces of a tile."""
        return (self.tile_m // self.piece_rows) * (self.tile_n // PIECE_COLUMNS)

    def tiles(self, size: int) -> int:
        """Output tiles of a ``size``³ problem."""
        return -(-size // self.tile_m) * -(-size // self.tile_n)

    def tiles_per_cta(self, size: int, sms: int) -> int:
        """The most tiles that one CTA computes on a GPU with ``sms`` SMs.

        The persistent kernels launch min(tiles, SMs) CTAs: their registers and shared memory allow one per SM.
        """
        if self.schedule is Schedule.NON_PERSISTENT:
            return 1
        tiles = self.tiles(size)
        return -(-tiles // min(tiles, sms))


TABLE2 = (
    Configuration("coop_128x128_2s", Schedule.COOPERATIVE, 128, 128, 2, row="Coop 128x128 2s"),
    Configuration("coop_128x128_3s", Schedule.COOPERATIVE, 128, 128, 3, row="Coop 128x128 3s"),
    Configuration("coop_128x128_4s", Schedule.COOPERATIVE, 128, 128, 4, row="Coop 128x128 4s"),
    Configuration("coop_128x256_2s", Schedule.COOPERATIVE, 128, 256, 2, row="Coop 128x256 2s"),
)
PING_PONG = Configuration("pingpong_64x128_3s", Schedule.PING_PONG, 64, 128, 3, row="Ping-pong 64x128 3s")
NON_PERSISTENT = Configuration(
    "nonpersistent_128x128_3s", Schedule.NON_PERSISTENT, 128, 128, 3, row="Non-persistent 128x128 3s"
)
HALF_CD = Configuration(
    "coop_128x128_3s_half", Schedule.COOPERATIVE, 128, 128, 3, Epilogue.HALF_CD, row="Coop 128x128 3s, C = D half"
)

CHECKED = (*TABLE2, PING_PONG, NON_PERSISTENT)  # verdict and measurement must agree for these
ALL = (*CHECKED, HALF_CD)
