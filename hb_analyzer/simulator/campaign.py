"""Random programs by the thousand: ``python -m hb_analyzer.simulator.campaign --programs 100000 --seed 0``.

Prints what was tried and what came out, per family of programs; exits with 1 if any claim is broken. Program number i
has the seed SEED + i, so one of them is tried again by ``--seed i --programs 1``.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from typing import Any

from hb_analyzer import analyse
from hb_analyzer.simulator.command import positive
from hb_analyzer.simulator.generate import FAMILIES, program
from hb_analyzer.simulator.layout import everything, placed
from hb_analyzer.simulator.trial import Trial, trial
from hb_analyzer.simulator.witness import Sampler, execution_text, minimise, search
from hb_analyzer.table import table

CLAIMS = ("overlap", "placement", "deadlock", "overrun", "race", "unawaited")
_BLOCK = 50  # programs that a worker does in one go


@dataclass
class Tally:
    """Sums over programs; ``counts`` by family and column, ``unwitnessed`` by explanation."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    unwitnessed: Counter[str] = field(default_factory=Counter)
    broken: list[tuple[int, str, str]] = field(default_factory=list)  # seed, claim, finding

    def add(self, seed: int, family: str, result: Trial) -> None:
        report = result.report
        self.counts[family, "programs"] += 1
        self.counts[family, "yes"] += result.accepted
        self.counts[family, "no"] += result.witnessed + len(result.unwitnessed)
        self.counts[family, "witnessed"] += result.witnessed
        self.counts[family, "executions"] += result.executions
        self.counts[family, "transitions"] += result.transitions
        self.counts[family, "deadlocks"] += bool(report.deadlocks)
        self.counts[family, "overruns"] += bool(report.overruns)
        self.counts[family, "races"] += bool(report.races)
        self.counts[family, "arrivals"] += bool(report.arrivals)
        self.counts[family, "unawaited"] += bool(report.unawaited)
        self.counts[family, "undecided"] += bool(report.undecided)
        for _, why in result.unwitnessed:
            self.unwitnessed[why] += 1
        self.broken += [(seed, claim, what) for claim, what in dict.fromkeys(result.broken)]

    def merge(self, other: Tally) -> None:
        self.counts += other.counts
        self.unwitnessed += other.unwitnessed
        self.broken += other.broken

    def total(self, column: str) -> int:
        return sum(count for (_, name), count in self.counts.items() if name == column)

    def share(self) -> float:
        """Of the refusals that are claims about executions, the share that an execution shows."""
        open_ended = sum(n for why, n in self.unwitnessed.items() if why.startswith(("the program", "not decided")))
        claimed = self.total("no") - open_ended
        return self.total("witnessed") / claimed if claimed else 1.0

    def to_json(self) -> dict[str, Any]:
        columns = sorted({column for _, column in self.counts})
        return {
            "totals": {column: self.total(column) for column in columns},
            "families": {f: {c: self.counts[f, c] for c in columns} for f in FAMILIES},
            "witness_share": round(self.share(), 4),
            "unwitnessed": dict(self.unwitnessed),
            "broken": [{"seed": seed, "claim": claim, "finding": what} for seed, claim, what in self.broken],
        }


def _ignore_interrupts() -> None:
    """In a worker: Ctrl-C reaches all processes of a terminal, and the one that started the workers ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def campaign(
    seeds: Sequence[int], schedules: int, effort: int, jobs: int = 1, progress: Callable[[Tally], None] | None = None
) -> Tally:
    """Tries the programs of ``seeds``; ``progress`` is told the tally so far after each block of them."""
    total = Tally()
    blocks = ((tuple(block), schedules, effort) for block in _blocks(seeds))
    with get_context("spawn").Pool(jobs, _ignore_interrupts) if jobs > 1 else nullcontext() as pool:
        done = map(_work, blocks) if pool is None else pool.imap_unordered(_work, blocks)
        for tally in done:
            total.merge(tally)
            if progress is not None:
                progress(total)
    total.broken.sort()
    return total


def _blocks(seeds: Sequence[int]) -> Iterator[list[int]]:
    rest = iter(seeds)
    while block := list(islice(rest, _BLOCK)):
        yield block


def _work(block: tuple[tuple[int, ...], int, int]) -> Tally:
    seeds, schedules, effort = block
    tally = Tally()
    for seed in seeds:
        family, drawn = program(seed)
        tally.add(seed, family, trial(drawn, analyse, seed, schedules, effort))
    return tally


# ---------------------------------------------------------------------------------------------------------------


def tally_text(tally: Tally) -> str:
    """The counts as tables."""
    columns = ("programs", "executions", "transitions", "yes", "no", "witnessed")
    defects = ("deadlocks", "overruns", "races", "arrivals", "unawaited", "undecided")
    header = ("family", *columns, *defects)
    rows = [(family, *(str(tally.counts[family, c]) for c in (*columns, *defects))) for family in FAMILIES]
    rows.append(("all", *(str(tally.total(c)) for c in (*columns, *defects))))
    lines = [table(header, rows, right=range(1, len(header))), ""]
    found = Counter(claim for _, claim, _ in tally.broken)
    lines.append("claims broken: " + ", ".join(f"{claim} {found[claim]}" for claim in CLAIMS))
    lines.append(
        f"refusals that an execution shows: {100 * tally.share():.2f} % of those that are about executions; not:"
    )
    lines += [f"  {count:7}  {why}" for why, count in tally.unwitnessed.most_common()]
    return "\n".join(lines) + "\n"


def show_progress(tally: Tally) -> None:
    """One line on stderr now and then, so that a long campaign can be watched (and its counts so far kept)."""
    done = tally.total("programs")
    if done % 1000 < _BLOCK:
        broken = ", ".join(f"{claim} (seed {seed})" for seed, claim, _ in tally.broken) or "none"
        share = f"{100 * tally.share():.2f} % of refusals shown"
        print(f"{done} programs, {share}, broken claims: {broken}", file=sys.stderr, flush=True)


def counterexample(seed: int) -> str:
    """The broken claim of program ``seed`` as a small execution, if it is about memory."""
    _, drawn = program(seed)
    report = analyse(drawn)
    wanted = [(kind, (v.a, v.b)) for v in report.verdicts if v.overlap for kind in ("conflict", "clobber")]
    for coincide in (everything, placed(report.placement)):
        sampler = Sampler(drawn, coincide)
        execution = search(sampler, wanted, seed, 2000)
        if execution is not None:
            return execution_text(minimise(execution, coincide))
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m hb_analyzer.simulator.campaign", description="Tests the engine on random programs."
    )
    parser.add_argument("--programs", type=positive, default=2000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="SEED", help="seed of the first program")
    parser.add_argument("--schedules", type=positive, default=12, metavar="K", help="executions that test each program")
    parser.add_argument("--effort", type=int, default=60, metavar="K", help="more of them in search of witnesses")
    parser.add_argument("--jobs", type=positive, default=os.cpu_count() or 1, metavar="J")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args(arguments)
    started = time.monotonic()
    seeds = range(args.seed, args.seed + args.programs)
    try:
        tally = campaign(seeds, args.schedules, args.effort, args.jobs, show_progress)
    except KeyboardInterrupt:
        print("\ninterrupted: nothing is kept", file=sys.stderr)
        return 130
    if args.json:
        print(json.dumps(tally.to_json(), indent=2))
    else:
        print(tally_text(tally), end="")
        print(f"seeds {args.seed} to {args.seed + args.programs - 1}, {time.monotonic() - started:.0f} s")
        for seed, claim, what in tally.broken[:20]:
            print(f"BROKEN {claim}: {what} (--seed {seed} --programs 1)")
        for seed in dict.fromkeys(seed for seed, claim, _ in tally.broken[:5] if claim in ("overlap", "placement")):
            print(counterexample(seed))
    return 1 if tally.broken else 0


if __name__ == "__main__":
    sys.exit(main())
