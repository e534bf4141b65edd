"""Translation validation: is the compiled kernel the program that was analysed?

:func:`validate` walks the PTX of a kernel as each warpgroup's threads do and follows the analysed program with them. It
proves, for every path and every trip count: each role performs the same waits, arrivals, copies, matrix instructions,
stores and barriers in the same order, on the same mbarriers and the same bytes of shared memory, and touches no other
byte. So every edge of the happens-before graph by which the analysis accepted an overlap exists in the compiled code.

Taken from samples instead of a proof: that the PTX computes the trip counts that were analysed (``launches.py``), and
comparisons of launch-time values alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from croqtile.analyse import Analysis
from croqtile.driver import Compilation, generate
from croqtile.toolchain import Toolchain, compile_ptx
from croqtile.validation import launches, ptx
from croqtile.validation.checker import Checker
from croqtile.validation.evaluate import Evaluator
from croqtile.validation.events import Refusal
from croqtile.validation.host import read_host
from croqtile.validation.proofs import proofs
from croqtile.validation.reference import modulus
from croqtile.validation.result import Problem, ProofPath, Validation


class Validator:
    """One analysed kernel and the CUDA text ``cuda`` made from it, ready for modules of PTX."""

    def __init__(self, analysis: Analysis, cuda: str) -> None:
        self.analysis = analysis
        self.function = f"__choreo_device_{analysis.kernel.name}"
        self._failure: str | None = None
        try:
            self._host = read_host(cuda, self.function)
            self._launches = launches.sample(analysis.kernel, analysis.program)
            self._evaluator = Evaluator(modulus(analysis.program), dict(self._launches.trips), self._launches.count)
        except ptx.PtxError as error:
            self._failure = str(error)

    def validate(self, text: str, first_only: bool = False, order: Sequence[int] = ()) -> Validation:
        """Compare the kernel in the PTX module ``text`` with the analysis; ``first_only``: up to the first problem,
        which is found soonest if ``order`` begins with the warpgroup that has it."""
        if self._failure is not None:
            return Validation(self.analysis.kernel.name, problems=(Problem("", self._failure),))
        checker = Checker(self.analysis, self._host, self._launches, self._evaluator, first_only, order)
        try:
            checker.run(ptx.parse(text, self.function))
        except Refusal as error:
            checker.problems.append(Problem("", str(error), error.line))
        except ptx.PtxError as error:
            checker.problems.append(Problem("", str(error)))
        pairs = overlapping(self.analysis)
        paths: list[ProofPath] = []
        if not checker.problems:
            paths, missing = proofs(self.analysis, pairs, checker.lines)
            checker.problems += missing
        return Validation(
            self.analysis.kernel.name,
            tuple(checker.rows),
            tuple(pairs),
            checker.walked,
            tuple(dict.fromkeys(checker.problems)),
            self._launches.count,
            tuple(paths),
        )


def validate_file(compilation: Compilation, tools: Toolchain) -> tuple[Validation, ...]:
    """Compile a file to PTX, and compare every kernel of it with its analysis. Raises CompileError (of the toolchain
    and of diagnostics), ToolchainError."""
    cuda = generate(compilation)
    text = compile_ptx(tools, cuda, compilation.include_directories)
    return tuple(Validator(analysis, cuda).validate(text) for analysis in compilation.analyses)


def overlapping(analysis: Analysis) -> list[tuple[str, str]]:
    """Pairs of buffers whose bytes intersect in the placement in force."""
    names = sorted(analysis.placement.offsets)
    return [(a, b) for a, b in combinations(names, 2) if analysis.placement.intersect(a, b)]
