"""Small programs of the tile language, edited into what a test needs, and what the front end says to them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from croqtile import ir
from croqtile.check import check
from croqtile.diagnostics import CompileError
from croqtile.frontend import load
from croqtile.parse import parse
from croqtile.preprocess import preprocess

Edits = Iterable[tuple[str, str]]

# One producer thread, two consumer warpgroups with a barrier before the store.
GEMM = """\
__co__ void gemm(global f16 [M, K] lhs, global f16 [N, K] rhs, global f16 [M, N] output) {
  parallel {bm, bn} by [cdiv(M, 128), cdiv(N, 128)] : block {
    shared f16 [128, 64] lhs_s[4];
    shared f16 [128, 64] rhs_s[4];
    shared f16 [128, 128] out_s;
    shared event full[4], empty[4], done;
    parallel p by 3 : group-4, t by 128 : thread {
      inthreads.async (p == 0 && t == 0) {
        foreach {k} in [cdiv(K, 64)] {
          stage = k % 4;
          wait empty[stage];
          tma.copy.async<full[stage]>.swiz<128> lhs.subspan(128, 64).at(bm, k) => lhs_s[stage];
          tma.copy.async<full[stage]>.swiz<128> rhs.subspan(128, 64).at(bn, k) => rhs_s[stage];
          trigger full[stage];
        }
      }
      inthreads.async (p > 0) {
        foreach {s} in [4] trigger empty[s];
        acc = mma.fill.f16 0.0f;
        foreach {k} in [cdiv(K, 64)] {
          stage = k % 4;
          wait full[stage];
          a = mma.load.swiz<128> lhs_s[stage].subspan(64, 64).at(p - 1, 0);
          b = mma.load.swiz<128> rhs_s[stage];
          mma.row.row acc, a, b;
          mma.commit;
          trigger empty[stage];
        }
        sync.wg 1, 2;
        mma.store acc, out_s.subspan(64, 128).at(p - 1, 0);
        tma.copy out_s.subspan(64, 128).at(p - 1, 0) => output.subspan(64, 128).at(bm * 2 + p - 1, bn);
      }
    }
  }
}
"""

# One consumer with fragments: scores of one block, their softmax in registers, times values.
SOFTMAX = """\
__co__ void softmax(global bf16 [128, 64] query, global bf16 [N, 64] key, global bf16 [N, 64] value,
                    global bf16 [128, 64] output) {
  float scale = 0.125f;
  parallel m by 2 : block {
    shared bf16 [64, 64] q_s, k_s, v_s, o_s;
    shared event full;
    parallel p by 2 : group-4 {
      inthreads.async (p == 0) {
        tma.copy.async<full>.swiz<128> query.subspan(64, 64).at(m, 0) => q_s;
        tma.copy.async<full>.swiz<128> key.subspan(64, 64).at(0, 0) => k_s;
        tma.copy.async<full>.swiz<128> value.subspan(64, 64).at(0, 0) => v_s;
        trigger full;
      }
      inthreads.async (p == 1) {
        fragment bf16[64, 64] prob;
        fragment f32[64] top {-inf}, total {0.0f};
        wait full;
        score = mma.fill.f32 0.0f;
        mma.row.row score, q_s, k_s;
        frag.reduce_max score, top, 1;
        frag.apply score, [](i, j) { return __exp2f((score.at(i, j) - top.at(i)) * scale); };
        frag.reduce_sum score, total, 1;
        frag.apply prob, [](i, j) { return __to<bf16>(score.at(i, j)); };
        out = mma.fill.f32 0.0f;
        mma.row.col out, prob, v_s;
        frag.apply out, [](i, j) { return out.at(i, j) / total.at(i); };
        mma.store out, o_s;
        tma.copy o_s => output.subspan(64, 64).at(m, 0);
      }
    }
  }
}
"""


def edited(program: str, edits: Edits) -> str:
    """``program`` with the first occurrence of each text replaced. A text that is missing is a mistake in the test."""
    for old, new in edits:
        assert old in program, f"no {old!r} in the program"
        program = program.replace(old, new, 1)
    return program


def write(directory: Path, text: str) -> str:
    path = directory / "kernel.co"
    path.write_text(text, encoding="utf-8")
    return str(path)


def messages(directory: Path, text: str, defines: Iterable[str] = ()) -> str:
    """What the front end prints about ``text``; "accepted" if nothing."""
    try:
        load(write(directory, text), defines)
    except CompileError as error:
        return error.rendered.replace(f"{directory}/", "")
    return "accepted\n"


def checked(directory: Path, text: str) -> ir.Kernel:
    """The kernel of ``text`` after ``check``."""
    return check(parse(preprocess(write(directory, text)).functions[0]))


def lowered(directory: Path, text: str) -> ir.Kernel:
    """The only kernel of ``text`` after ``lower``."""
    (kernel,) = load(write(directory, text)).kernels
    return kernel
