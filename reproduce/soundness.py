"""The evidence of soundness as commands: ``python -m reproduce.soundness PART``.

| part | what it does |
|---|---|
| ``programs`` | random programs against the simulator (``hb_analyzer/simulator/campaign.py``) |
| ``exhaustive`` | every kernel in its own placement under all schedules, at small trip counts |
| ``mutants`` | every kernel and example with one thing wrong: who notices? |
| ``peers`` | what "all pairs of phases ordered" accepts that is wrong; what no reuse across roles costs |
| ``translation`` | the PTX of every kernel against the analysed program, and mutants of it (needs nvcc) |

Without a part: all of them. Exit code 1 if a claim is broken: an unsound answer, a mutant that survives.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from croqtile.analyse import analyse as analyse_kernel
from croqtile.frontend import load
from hb_analyzer import analyse
from hb_analyzer.examples import example_paths
from hb_analyzer.model import Program
from hb_analyzer.pattern_load import load_pattern
from hb_analyzer.report import Placement
from hb_analyzer.simulator.campaign import campaign, counterexample, tally_text
from hb_analyzer.simulator.code import compile_program
from hb_analyzer.simulator.command import positive
from hb_analyzer.simulator.explore import explore
from hb_analyzer.simulator.layout import Layout, placed
from hb_analyzer.simulator.mutants import FATES, fate, mutants
from hb_analyzer.simulator.peers import RULES, compare_rules, cost_of_caution
from hb_analyzer.simulator.witness import execution_text
from hb_analyzer.table import table
from hb_analyzer.translate import to_program
from reproduce import ROOT
from reproduce.machine import cores

COUNTS = (0, 1, 2, 3, 4)  # trip counts of exhaustive runs, above the smallest that is allowed
WARP_COUNTS = (0, 1)  # … of those in which the warps of a warpgroup run apart
_TRANSITIONS, _WARP_TRANSITIONS = 400_000, 60_000


def subjects(kernels: bool = True, examples: bool = True) -> Iterator[tuple[str, Callable[[], Program]]]:
    """Every kernel (``kernel/NAME``) and every example pattern (``example/NAME``) as a model."""
    for path in sorted((ROOT / "kernels").glob("*/*.co")) if kernels else ():
        yield f"kernel/{path.stem}", lambda path=path: analyse_kernel(load(str(path)).kernels[0]).program  # type: ignore[misc]
    for path in example_paths() if examples else ():
        yield f"example/{path.stem}", lambda path=path: to_program(load_pattern(path))  # type: ignore[misc]


# ---------------------------------------------------------------------------------------------------------------
# Parts: each returns data; the texts below make tables of them


def exhaust(program: Program, placement: Placement) -> dict[str, int]:
    """All executions of ``program`` at small trip counts with its buffers at ``placement``.

    ``covered``: choices of trip counts explored completely; ``warps_covered``: the same with two warps in each
    warpgroup; ``findings``: what was observed, over all of them."""
    result = {"covered": 0, "warps_covered": 0, "states": 0, "transitions": 0, "findings": 0}
    runs = [(1, count, _TRANSITIONS) for count in COUNTS] + [(2, count, _WARP_TRANSITIONS) for count in WARP_COUNTS]
    for warps, count, limit in runs:
        values = {
            p.name: min(p.minimum + count, p.maximum if p.maximum is not None else p.minimum + count)
            for p in program.parameters
        }
        code = compile_program(program, values, warps)
        found = explore(code, Layout(code, placed(placement)), limit)
        result["covered" if warps == 1 else "warps_covered"] += found.complete
        result["states"] += found.states
        result["transitions"] += found.transitions
        result["findings"] += len(found.findings)
    return result


def mutate(program: Program) -> dict[str, Any]:
    """The mutants of ``program`` by fate, and those that nothing notices."""
    original = analyse(program)
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    unnoticed = []
    for mutant in mutants(program):
        found = fate(original, mutant.program, analyse)
        counts[found.name] += 1
        kinds[mutant.kind] += 1
        if found.name in ("equivalent", "open", "survived"):
            unnoticed.append({"mutant": mutant.what, "fate": found.name, "detail": found.detail})
    return {"mutants": sum(counts.values()), "fates": dict(counts), "kinds": dict(kinds), "unnoticed": unnoticed}


def cost(program: Program) -> dict[str, int]:
    return vars(cost_of_caution(program, analyse(program))).copy()


# ---------------------------------------------------------------------------------------------------------------
# The command


def _programs(args: argparse.Namespace) -> tuple[Any, str, bool]:
    tally = campaign(range(args.seed, args.seed + args.programs), args.schedules, args.effort, args.jobs)
    text = f"Random programs (seeds {args.seed} to {args.seed + args.programs - 1})\n{tally_text(tally)}"
    for seed, claim, what in tally.broken[:20]:
        text += f"BROKEN {claim}: {what} (--seed {seed} --programs 1)\n{counterexample(seed)}"
    return tally.to_json(), text, not tally.broken


def _exhaustive(args: argparse.Namespace) -> tuple[Any, str, bool]:
    data = {}
    for name, program in _chosen(args):
        model = program()
        data[name] = exhaust(model, analyse(model).placement)
    header = ("kernel or example", "trip counts covered", "with two warps", "states", "transitions", "findings")
    rows = [(name, *(str(n) for n in found.values())) for name, found in data.items()]
    good = all(found["findings"] == 0 for name, found in data.items() if name.startswith("kernel/"))
    text = f"All executions with every buffer at its address\n{table(header, rows, right=range(1, 6))}\n"
    return data, text, good


def _mutants(args: argparse.Namespace) -> tuple[Any, str, bool]:
    data = {name: mutate(program()) for name, program in _chosen(args)}
    header = ("kernel or example", "mutants", *FATES)
    rows = [
        (name, str(found["mutants"]), *(str(found["fates"].get(f, 0)) for f in FATES)) for name, found in data.items()
    ]
    sums = [sum(found["fates"].get(f, 0) for found in data.values()) for f in FATES]
    rows.append(("all", str(sum(sums)), *map(str, sums)))
    text = f"Mutants\n{table(header, rows, right=range(1, len(header)))}\n"
    for name, found in data.items():
        for item in found["unnoticed"]:
            if args.verbose or item["fate"] != "equivalent":
                text += f"  {name}: {item['mutant']}: {item['fate']}: {item['detail']}\n"
    survived = sum(found["fates"].get("survived", 0) for found in data.values())
    return data, text, survived == 0


def _peers(args: argparse.Namespace) -> tuple[Any, str, bool]:
    compared = compare_rules(range(args.seed, args.seed + args.peer_programs), analyse)
    rules: dict[str, Any] = {}
    text = f"Other rules on {compared.programs} random programs without defects of their own\n"
    rows = []
    for name in RULES:
        found = compared.rules[name]
        rules[name] = {"accepted": found.accepted, "proved": found.proved, "wrong": found.wrong}
        neither = found.accepted - found.proved - found.wrong
        rows.append((name, str(found.accepted), str(found.proved), str(found.wrong), str(neither)))
    text += table(("rule", "pairs accepted", "proved here", "shown wrong", "neither"), rows, right=range(1, 5)) + "\n"
    for name in RULES:
        for kind, (phases, execution, pair) in compared.rules[name].smallest.items():
            text += f"\nSmallest {kind} that “{name}” accepts ({' over '.join(pair)}; {phases} phases):\n"
            text += execution_text(execution)
    costs = {name: cost(program()) for name, program in _chosen(args)}
    header = ("kernel or example", "apart", "no reuse across roles", "this analysis")
    text += "\nBytes of shared memory\n"
    text += table(header, [(name, *map(str, found.values())) for name, found in costs.items()], right=(1, 2, 3)) + "\n"
    return {"programs": compared.programs, "rules": rules, "costs": costs}, text, True


def _translation(args: argparse.Namespace) -> tuple[Any, str, bool]:
    from croqtile import toolchain
    from reproduce.translation import text_of, translation

    paths = [path for path in sorted((ROOT / "kernels").glob("*/*.co")) if _wanted(args, f"kernel/{path.stem}")]
    if not paths and args.part != "all":  # nothing was compared: that is no pass
        raise ValueError(f"there is no {', '.join(args.only)}")
    try:
        tools = toolchain.find()
        data = {f"kernel/{path.stem}": translation(path, tools) for path in paths}
    except (toolchain.ToolchainError, toolchain.CompileError) as error:
        if args.part == "all" and isinstance(error, toolchain.ToolchainError):
            return {}, f"Compiled kernels against the analysed programs: not compared ({error})\n", True
        raise ValueError(str(error)) from error
    good = all(not found["problems"] and not found["unnoticed"] for found in data.values())
    return data, text_of(data), good


PARTS = {
    "programs": _programs,
    "exhaustive": _exhaustive,
    "mutants": _mutants,
    "peers": _peers,
    "translation": _translation,
}


def _wanted(args: argparse.Namespace, name: str) -> bool:
    return not args.only or name in args.only


def _chosen(args: argparse.Namespace) -> list[tuple[str, Callable[[], Program]]]:
    found = [(name, program) for name, program in subjects() if _wanted(args, name)]
    if not found:
        raise ValueError(f"there is no {', '.join(args.only)}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m reproduce.soundness", description="Evidence of soundness.")
    parser.add_argument("part", choices=(*PARTS, "all"), nargs="?", default="all")
    parser.add_argument("--programs", type=positive, default=2000, metavar="N", help="random programs (default: 2000)")
    parser.add_argument("--seed", type=int, default=0, metavar="SEED", help="seed of the first one")
    parser.add_argument("--schedules", type=positive, default=12, metavar="K", help="executions that test each program")
    parser.add_argument("--effort", type=int, default=60, metavar="K", help="more of them in search of witnesses")
    parser.add_argument("--peer-programs", type=int, default=1000, metavar="N", help="programs for the other rules")
    parser.add_argument("--jobs", type=positive, default=cores(), metavar="J")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="kernel/NAME or example/NAME")
    parser.add_argument("--verbose", action="store_true", help="list equivalent mutants too")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args(arguments)
    good, everything = True, {}
    for name in PARTS if args.part == "all" else (args.part,):
        try:
            data, text, fine = PARTS[name](args)
        except ValueError as error:
            parser.error(str(error))
        except KeyboardInterrupt:
            print("\ninterrupted", file=sys.stderr)
            return 130
        good = good and fine
        everything[name] = data
        if not args.json:
            print(text, flush=True)
    if args.json:
        print(json.dumps(everything if args.part == "all" else everything[args.part]))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
