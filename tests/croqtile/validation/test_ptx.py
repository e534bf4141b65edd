"""Reading PTX."""

from __future__ import annotations

import pytest

from croqtile.validation.ptx import PtxError, find_entry, parse, split_operands
from tests.croqtile.validation import kernels

MODULE = """\
.version 9.0
.target sm_90a
.extern .shared .align 128 .b8 k_memory_[];
.visible .entry _Z1kPf(
\t.param .u64 _Z1kPf_param_0,
\t.param .align 128 .b8 _Z1kPf_param_1[128]
)
.maxntid 256, 1, 1
{
\t.reg .pred %p<2>;
\t.shared .align 8 .b8 bars[32]; // { a comment }
\tmov.u32 \t%r1, bars;
\t@!%p1 bra \t$L__BB0_2;
\t// begin inline asm
\t{
.reg .pred complete;
again:
mbarrier.try_wait.parity.shared::cta.b64 complete, [%r1], %r2;
@complete bra done;
bra again;
done:
}
\t// end inline asm
$L__BB0_2:
\t{
again:
bra again;
}
\tst.shared.v2.f32 [%r1+8], {%f1, %f2};
\tret;
}
"""


def test_instructions_and_labels() -> None:
    entry = parse(MODULE, "k")
    assert entry.name == "_Z1kPf" and entry.threads == 256
    assert entry.parameters == ("_Z1kPf_param_0", "_Z1kPf_param_1")
    assert [i.opcode for i in entry.instructions][:3] == ["mov.u32", "bra", "mbarrier.try_wait.parity.shared::cta.b64"]
    assert entry.instructions[1].guard == ("%p1", False) and entry.instructions[1].line == 13
    assert entry.instructions[-2].operands == ("[%r1+8]", "{%f1, %f2}")
    assert entry.labels["$L__BB0_2"] == 5


def test_names_of_inline_assembly_are_local() -> None:
    entry = parse(MODULE, "k")
    wait, done, again, other = entry.instructions[2:6]
    assert wait.operands[0] == done.guard[0] == "complete@1"  # type: ignore[index]
    assert entry.labels[again.operands[0]] == 2 and entry.labels[done.operands[0]] == 5
    assert entry.labels[other.operands[0]] == 5 and other.operands[0] != again.operands[0]


def test_shared_variables() -> None:
    shared = parse(MODULE, "k").shared
    assert (shared["k_memory_"].align, shared["k_memory_"].size) == (128, None)
    assert (shared["bars"].align, shared["bars"].size) == (8, 32)


def test_the_kernel_of_a_function() -> None:
    assert find_entry(MODULE, "k")[0] == "_Z1kPf"
    with pytest.raises(PtxError, match="0 kernels are called other"):
        parse(MODULE, "other")
    with pytest.raises(PtxError, match="how many threads"):
        parse(MODULE.replace(".maxntid 256, 1, 1", ""), "k")
    with pytest.raises(PtxError, match="does not end"):
        parse(MODULE[: MODULE.index("ret;")], "k")
    with pytest.raises(PtxError, match="stands twice"):
        parse(MODULE.replace("\tret;", "$L__BB0_2:\n\tret;"), "k")


def test_a_directive_hides_no_instruction() -> None:
    """``.loc`` ends with its line; where others end is not known."""
    for after in ("mov.u32", "{\n.reg .pred complete", "st.shared"):
        located = MODULE.replace(after, f".loc\t1 28 3, function_name $L__info_string0, inlined_at 1 2 3\n\t{after}")
        assert list(map(str, parse(located, "k").instructions)) == list(map(str, parse(MODULE, "k").instructions))
    with pytest.raises(PtxError, match=r"line 29: a directive that is not followed: \.weak"):
        parse(MODULE.replace("\tst.shared", "\t.weak 1\n\tst.shared"), "k")


def test_operands() -> None:
    assert split_operands("{%r1, %r2}, [%rd1, {%r3, %r4}], 5") == ["{%r1, %r2}", "[%rd1, {%r3, %r4}]", "5"]


def test_the_kept_kernel() -> None:
    entry = parse(kernels.module(), kernels.FUNCTION)
    assert entry.threads == 384 and len(entry.parameters) == 6
    assert sum(i.opcode.startswith("wgmma.mma_async") for i in entry.instructions) == 4
