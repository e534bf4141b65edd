"""The command line of ``choreo``, as data: parsing and the help texts, nothing else."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

PASSES = ("parse", "check", "lower", "analyse", "emit")

USAGE = """\
usage: choreo [-gs | -es] [-t cute] [-arch=sm_90a] [--no-sala] [-DNAME=VALUE] file.co [-o OUT]
"""

HELP = (
    USAGE
    + """
Compiles a tile-language file (.co) for sm_90a. Without -gs or -es: to the executable OUT, with nvcc.

  -o OUT                output file (default for executables: a.out; for -es: standard output)
  -es                   write the generated CUDA source
  -gs                   write a work script: `bash OUT --compile-link`, `bash OUT --execute`; needs no nvcc and no GPU
  -DNAME[=VALUE]        define a macro, for the file and for nvcc
  -t cute               target; accepted for compatibility
  -arch=sm_90a          architecture; sm_90a is the only one
  --explain [--json]    which buffers may share memory and why, or the interleaving that forbids it
  --emit-pattern[=FILE] the kernel's synchronisation structure as a pattern for `python -m hb_analyzer`
  --memory-map OUT.svg  draw the placement of the shared buffers, with and without overlap
  --validate            compile to PTX with nvcc, and compare it with the analysed program: barriers, copies, bytes
  --stress              a build for stress tests: random delays in every role, shared memory full of NaN at the start,
                        and NaN over what the analysis calls dead; CHOREO_STRESS_SEED=n chooses the delays
  --dump=PASS,...       print the result of passes: parse, check, lower, analyse, emit
  --version             print the version
  --help                print this text
  --help-hidden         print this text and the remaining options

Exit codes: 0 done, 1 the program is refused or does not compile, or --validate does not show that the code is what was
analysed, 2 bad command line or unusable file.
"""
)

HIDDEN_HELP = (
    HELP
    + """
Hidden options:
  --no-sala             give each shared buffer its own place (no signal-aware liveness analysis)
  --unsound-overlap A,B with --stress and CHOREO_TESTING=1: a wrong build, in which the buffers A and B lie on each
                        other although the analysis forbids it
  --unsound-no-wait E   likewise, without the waits for event E
  --use-warpspec        accepted without effect
"""
)

_DEFINE = re.compile(r"[A-Za-z_]\w*(\([\w\s,.]*\))?")


class UsageError(Exception):
    """The command line is wrong; the message is one line."""


@dataclass(frozen=True)
class Options:
    input: str = ""
    output: str | None = None
    mode: str = "executable"  # "executable" | "script" | "source" | "inform" (only --explain, --validate, …)
    sala: bool = True
    defines: dict[str, str] = field(default_factory=dict)
    explain: bool = False
    validate: bool = False
    json: bool = False
    pattern: str | None = None  # file, or "-" for standard output
    memory_map: str | None = None
    dump: tuple[str, ...] = ()
    stress: bool = False
    unsound_overlap: tuple[str, str] | None = None
    unsound_no_wait: str | None = None
    message: str | None = None  # --help, --version, …: print this and stop

    @property
    def informs(self) -> bool:
        """Is anything asked for beside the program?"""
        return (
            self.explain or self.validate or bool(self.dump) or self.pattern is not None or self.memory_map is not None
        )


def version_text() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"choreo {version('sala-reproduction')} (croqtile, sm_90a)\n"
    except PackageNotFoundError:
        return "choreo (croqtile, sm_90a; version unknown: not installed as a package)\n"


def parse(argv: list[str]) -> Options:
    """Options from the arguments after the command's name, in any order. Raises UsageError."""
    seen: dict[str, object] = {}
    defines: dict[str, str] = {}
    inputs: list[str] = []
    words = list(argv)

    def value(option: str) -> str:
        if not words:
            raise UsageError(f"{option} needs a value")
        return words.pop(0)

    def set_once(key: str, option: str, given: object) -> None:
        if key in seen and seen[key] != given:
            raise UsageError(f"{option} contradicts an earlier option" if key == "mode" else f"{option} is given twice")
        seen[key] = given

    while words:
        word = words.pop(0)
        name, has_value, attached = word.partition("=")
        if word == "--":
            inputs += words
            break
        if not word.startswith("-") or word == "-":
            inputs.append(word)
        elif word in ("-gs", "-es"):
            set_once("mode", word, "script" if word == "-gs" else "source")
        elif word.startswith("-o"):
            set_once("output", "-o", word[2:] or value("-o"))
        elif word.startswith("-D"):
            macro, body = _define(word[2:] or value("-D"))
            defines[macro] = body
        elif name in ("-arch", "--arch"):
            _expect("-arch", attached if has_value else value(name), ("sm_90a",))
        elif word in ("-t", "-tcute"):
            _expect("-t", word[2:] or value("-t"), ("cute",))
        elif word == "--no-sala":
            seen["sala"] = False
        elif word == "--stress":
            seen["stress"] = True
        elif name == "--unsound-overlap":
            set_once("unsound_overlap", name, _pair(attached if has_value else value(name)))
        elif name == "--unsound-no-wait":
            set_once("unsound_no_wait", name, attached if has_value else value(name))
        elif word in ("--use-warpspec", "-use-warpspec"):
            pass
        elif word == "--explain":
            seen["explain"] = True
        elif word == "--validate":
            seen["validate"] = True
        elif word == "--json":
            seen["json"] = True
        elif name == "--emit-pattern":
            # The file is optional, and what follows may be the input: only a .json name is taken for the output.
            separate = not has_value and bool(words) and words[0].endswith(".json")
            set_once("pattern", name, attached if has_value else (words.pop(0) if separate else "-"))
        elif name == "--memory-map":
            set_once("memory_map", name, attached if has_value else value(name))
        elif name == "--dump":
            seen["dump"] = _passes(attached if has_value else value(name))
        elif word in ("--help", "-h"):
            return Options(message=HELP)
        elif word == "--help-hidden":
            return Options(message=HIDDEN_HELP)
        elif word == "--version":
            return Options(message=version_text())
        else:
            raise UsageError(f"unknown option `{word}` (see --help)")
    return _complete(seen, defines, inputs)


def _complete(seen: dict[str, object], defines: dict[str, str], inputs: list[str]) -> Options:
    if not inputs:
        raise UsageError("no input file (see --help)")
    if len(inputs) > 1:
        raise UsageError(f"one input file expected, got {len(inputs)}: {', '.join(inputs)}")
    if not inputs[0]:
        raise UsageError("the input file's name is empty")
    for key, option in (("output", "-o"), ("pattern", "--emit-pattern"), ("memory_map", "--memory-map")):
        if seen.get(key) == "":
            raise UsageError(f"{option} needs the name of a file")
    if seen.get("validate") and seen.get("stress"):
        raise UsageError("--validate compares plain code: what --stress adds is no part of the analysed program")
    if seen.get("json") and not seen.get("explain"):
        raise UsageError("--json goes with --explain")
    for key, option in (("unsound_overlap", "--unsound-overlap"), ("unsound_no_wait", "--unsound-no-wait")):
        if key in seen and not (seen.get("stress") and os.environ.get("CHOREO_TESTING") == "1"):
            raise UsageError(f"{option} makes a wrong program: it is for tests only (see --help-hidden)")
    informs = Options(**{key: value for key, value in seen.items() if key != "mode"}).informs  # type: ignore[arg-type]
    mode = seen.pop("mode", "inform" if informs else "executable")
    if mode == "script" and "output" not in seen:
        raise UsageError("-gs needs -o OUT: a work script is never written to standard output")
    if mode == "inform" and "output" in seen:
        raise UsageError("-o goes with -gs, -es or an executable; --explain and --dump print to standard output")
    return Options(input=inputs[0], mode=str(mode), defines=defines, **seen)  # type: ignore[arg-type]


def _define(text: str) -> tuple[str, str]:
    macro, has_value, body = text.partition("=")
    if not _DEFINE.fullmatch(macro) or "\n" in text:
        raise UsageError(f"-D needs NAME or NAME=VALUE on one line, got {text!r}")
    return macro, body if has_value else "1"


def _pair(text: str) -> tuple[str, str]:
    names = text.split(",")
    if len(names) != 2 or not all(names):
        raise UsageError(f"--unsound-overlap needs two buffers as A,B, got {text!r}")
    return names[0], names[1]


def _expect(option: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise UsageError(f"{option} `{given}` is not supported: only {', '.join(allowed)}")


def _passes(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for name in names:
        if name not in PASSES:
            raise UsageError(f"--dump: unknown pass `{name}`: one of {', '.join(PASSES)}")
    return names
