"""``python -m triton_overlap KERNEL.ttgir``: what the overlap would do to a kernel, and why not. Needs no GPU."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hb_analyzer.text_explain import explain_text
from triton_overlap.errors import OverlapError, RefusedError
from triton_overlap.plan import Settings, make_plan


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m triton_overlap", description=__doc__)
    parser.add_argument("file", type=Path, help="TTGIR of a kernel, e.g. from kernel.asm['ttgir']")
    parser.add_argument("--remedy", choices=("drop", "invalidate"), default="drop", help="for placeholder mbarriers")
    parser.add_argument("--repair", action="store_true", help="placeholder mbarriers only, no overlap")
    parser.add_argument("-o", "--output", type=Path, help="write the rewritten TTGIR there (for ir_override)")
    parser.add_argument("--explain", action="store_true", help="on refusal: an interleaving that goes wrong")
    options = parser.parse_args(argv)
    try:
        text = options.file.read_text(encoding="utf-8")
        plan = make_plan(text, Settings(overlap=not options.repair, remedy=options.remedy))
    except OSError as error:
        print(f"{options.file}: {error.strerror}", file=sys.stderr)
        return 2
    except UnicodeDecodeError:
        print(f"{options.file}: not TTGIR, which is UTF-8 text", file=sys.stderr)
        return 2
    except RefusedError as refusal:
        print(f"refused: {refusal}")
        if refusal.verdict and options.explain:
            print("\n" + explain_text(options.file.name, refusal.verdict), end="")
        return 1
    except OverlapError as error:
        print(f"{options.file}: {error}", file=sys.stderr)
        return 2
    print(plan)
    try:
        if options.output:
            options.output.write_text(plan.text, encoding="utf-8")
    except OSError as error:
        print(f"cannot write {options.output}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
