"""Inline-assembly wrappers of the ``wgmma.mma_async`` instructions that one kernel uses."""

from __future__ import annotations

from dataclasses import dataclass

from croqtile.ir import Elem

_PTX_TYPE = {Elem.F16: "f16", Elem.BF16: "bf16", Elem.F32: "f32", Elem.E4M3: "e4m3", Elem.E5M2: "e5m2"}


@dataclass(frozen=True)
class Instruction:
    """One shape of the instruction: D[64×n] += A[64×k] · B[k×n], k = 32 bytes of the operand type.

    A is in shared memory (K-major) or, ``a_registers``, in four 32-bit registers per thread. ``b_transposed``: B is
    stored k × n (N-major), which only 16-bit types allow.
    """

    n: int  # multiple of 8, 8 … 256
    a: Elem
    b: Elem
    accumulator: Elem  # F16 or F32
    a_registers: bool = False
    b_transposed: bool = False

    @property
    def k(self) -> int:
        return 32 // self.a.bytes

    @property
    def registers(self) -> int:
        """32-bit registers per thread that hold the accumulator (f16: two elements each)."""
        return self.n * 64 // 128 * self.accumulator.bytes // 4

    @property
    def name(self) -> str:
        """``wgmma_64x128x16_f32_bf16_bf16_rs_nt``: shape, types, operand places; nt = A row-major · B row-major."""
        types = "_".join(_PTX_TYPE[e] for e in (self.accumulator, self.a, self.b))
        return (
            f"wgmma_64x{self.n}x{self.k}_{types}_{'rs' if self.a_registers else 'ss'}"
            f"{'_transposed' if self.b_transposed else ''}"
        )


def wrapper(instruction: Instruction) -> str:
    """The ``__device__`` function; ``accumulate`` false starts from zero instead of D."""
    count = instruction.registers
    is_float = instruction.accumulator is Elem.F32
    element, constraint = ("float", "+f") if is_float else ("uint32_t", "+r")
    places = [f"%{i}" for i in range(count)]
    position = count
    if instruction.a_registers:
        a_place = "{" + ", ".join(f"%{position + i}" for i in range(4)) + "}"
        a_parameter = "uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3"
        a_inputs = [f'"r"(a{i})' for i in range(4)]
    else:
        a_place, a_parameter, a_inputs = f"%{position}", "uint64_t a", ['"l"(a)']
    position += len(a_inputs)
    b_place, flag_place = f"%{position}", f"%{position + 1}"
    immediates = "1, 1"
    if instruction.a.bytes == 2:
        transposed = int(instruction.b_transposed)
        immediates += f", {transposed}" if instruction.a_registers else f", 0, {transposed}"
    types = ".".join(_PTX_TYPE[e] for e in (instruction.accumulator, instruction.a, instruction.b))
    outputs = [f'"{constraint}"(d[{i}])' for i in range(count)]
    lines = [
        f"__device__ __forceinline__ void {instruction.name}(",
        f"    {element} (&d)[{count}], {a_parameter}, uint64_t b, int accumulate) {{",
        "  asm volatile(",
        '      "{\\n"',
        '      ".reg .pred accumulate;\\n"',
        f'      "setp.ne.b32 accumulate, {flag_place}, 0;\\n"',
        f'      "wgmma.mma_async.sync.aligned.m64n{instruction.n}k{instruction.k}.{types} "',
        *_quoted(places),
        f'      "{a_place}, {b_place}, accumulate, {immediates};\\n"',
        '      "}"',
        *_wrapped(outputs, "      : ", "        "),
        f'      : {", ".join(a_inputs)}, "l"(b), "r"(accumulate));',
        "}",
    ]
    return "\n".join(lines) + "\n"


def _quoted(places: list[str]) -> list[str]:
    """The register list of the assembly text, sixteen to a line."""
    rows = [", ".join(places[i : i + 16]) for i in range(0, len(places), 16)]
    rows[0] = "{" + rows[0]
    rows[-1] += "}"
    return [f'      "{row}, "' for row in rows]


def _wrapped(items: list[str], first: str, rest: str) -> list[str]:
    rows = [", ".join(items[i : i + 8]) for i in range(0, len(items), 8)]
    return [(first if i == 0 else rest) + row + ("," if i < len(rows) - 1 else "") for i, row in enumerate(rows)]
