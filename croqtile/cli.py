"""The ``choreo`` command. Modules are imported where they are used: a run of ``-gs`` must start fast."""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from croqtile.options import Options, UsageError, parse

if TYPE_CHECKING:
    from croqtile.diagnostics import Diagnostic
    from croqtile.driver import Compilation

DONE, REFUSED, USAGE, INTERNAL = 0, 1, 2, 3


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit code (0 done, 1 refused, 2 bad command line or unusable file, 3 a bug)."""
    if argv is None:
        gc.disable()  # the process ends in a moment; collecting garbage would only cost time
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal without these characters shows "?"
    try:
        options = parse(sys.argv[1:] if argv is None else list(argv))
        if options.message is not None:
            sys.stdout.write(options.message)
            return DONE
        status = _run(options)
        sys.stdout.flush()
        return status
    except UsageError as error:
        return _fail(str(error), USAGE)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has gone (`choreo --explain … | head`); keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        if os.environ.get("CHOREO_DEBUG"):
            raise
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _fail(f"cannot write {error.filename or 'standard output'}: {error.strerror}", USAGE)
        what = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        return _fail(f"internal error, {what} (set CHOREO_DEBUG=1 for the traceback)", INTERNAL)


def _run(options: Options) -> int:
    _check_input(options.input)
    for output in (options.output, options.pattern, options.memory_map):
        if output is not None and _same_file(options.input, output):
            raise UsageError(f"{output} is the input file: it would be overwritten")
    from croqtile.diagnostics import CompileError
    from croqtile.driver import compile_file

    try:
        compilation = compile_file(Path(options.input), options.defines, options.sala)
    except CompileError as error:
        _report(error.diagnostics)
        return REFUSED
    if not compilation.analyses and (options.validate or options.mode == "inform"):
        raise UsageError(f"{options.input} has no __co__ function: there is nothing to analyse")
    found = [diagnostic for analysis in compilation.analyses for diagnostic in analysis.diagnostics]
    _report(found)
    for analysis in compilation.analyses:
        if not analysis.errors:
            _note(f"cudaFuncAttributeMaxDynamicSharedMemorySize is set to `{analysis.bytes}`")
    if options.informs:
        _warn_of_wrong_build(options, compilation)
        _inform(options, compilation)
    if any(diagnostic.severity == "error" for diagnostic in found):
        return REFUSED
    try:
        if options.validate and not _validate(compilation):
            return REFUSED
        if options.mode == "inform":
            return DONE
        return _build(options, compilation)
    except CompileError as error:
        _report(error.diagnostics)
        return REFUSED


def _warn_of_wrong_build(options: Options, compilation: Compilation) -> None:
    """What is printed beside a build that is wrong on purpose is the analysis, which that build does not keep to."""
    if options.unsound_overlap is None and options.unsound_no_wait is None:
        return
    from croqtile.stress import CannotBeWrongError, Wrong, stress_of

    try:
        for analysis in compilation.analyses:
            stress, _ = stress_of(analysis, Wrong(options.unsound_overlap, options.unsound_no_wait))
            _note(f"choreo: warning: {analysis.kernel.name} is wrong on purpose, for tests only: {stress.warning}")
    except CannotBeWrongError as error:
        raise UsageError(str(error)) from error
    _note("choreo: warning: what follows is the analysis, with its placement, and not that of the wrong build")


def _inform(options: Options, compilation: Compilation) -> None:
    """What was asked for beside the program. Printed even for a refused program: that is when it is needed most."""
    if options.dump:
        from croqtile.dump import dump

        for name in options.dump:
            sys.stdout.write(dump(compilation, name))
    if options.explain:
        from croqtile import explain

        if options.json:
            sys.stdout.write(explain.as_json(compilation.analyses))
        else:
            sys.stdout.write(explain.as_text(compilation.analyses))
    if options.pattern is not None:
        _write(options.pattern, _pattern(compilation))
    if options.memory_map is not None:
        from croqtile import memory_map

        _write(options.memory_map, memory_map.draw(compilation.analyses))


def _pattern(compilation: Compilation) -> str:
    from hb_analyzer.pattern_out import NotExpressible, pattern_json

    if len(compilation.analyses) != 1:
        raise UsageError(f"--emit-pattern describes one kernel, and the file has {len(compilation.analyses)}")
    try:
        return pattern_json(compilation.analyses[0].program)
    except NotExpressible as error:
        raise UsageError(f"--emit-pattern: {error}") from error


def _validate(compilation: Compilation) -> bool:
    """Is the compiled code the program that was analysed?"""
    from croqtile import toolchain
    from croqtile.validation import report, validate

    try:
        found = validate.validate_file(compilation, toolchain.find())
    except toolchain.ToolchainError as error:
        _fail(str(error), REFUSED)
        return False
    except toolchain.CompileError as error:
        sys.stderr.write(error.log)
        _fail(str(error), REFUSED)
        return False
    sys.stdout.write("\n".join(map(report.as_text, found)))
    return not any(validation.problems for validation in found)


def _build(options: Options, compilation: Compilation) -> int:
    if options.mode == "executable":
        return _build_executable(options, compilation, options.output or "a.out")
    source = _source(options, compilation)
    if options.mode == "source":
        _write(options.output or "-", source)
    else:
        from croqtile import workscript

        assert options.output is not None
        includes = compilation.include_directories
        _write(options.output, workscript.script_text(source, compilation.path, includes, options.output))
    return DONE


def _source(options: Options, compilation: Compilation) -> str:
    from croqtile.driver import generate

    if not options.stress:
        return generate(compilation)
    from croqtile.stress import CannotBeWrongError, Wrong

    try:
        return generate(compilation, Wrong(options.unsound_overlap, options.unsound_no_wait))
    except CannotBeWrongError as error:
        raise UsageError(str(error)) from error


def _build_executable(options: Options, compilation: Compilation, output: str) -> int:
    from croqtile import toolchain

    out = Path(output)
    if out.is_dir():
        raise UsageError(f"cannot write {output}: it is a directory")
    if not os.access(out if out.exists() else out.absolute().parent, os.W_OK):
        raise UsageError(f"cannot write {output}: the directory does not exist or is not writable")
    try:
        tools = toolchain.find()
        log = toolchain.compile_executable(tools, _source(options, compilation), out, compilation.include_directories)
    except toolchain.ToolchainError as error:
        return _fail(str(error), REFUSED)
    except toolchain.CompileError as error:
        sys.stderr.write(error.log)
        return _fail(str(error), REFUSED)
    sys.stderr.write(log)
    return DONE


def _check_input(name: str) -> None:
    path = Path(name)
    if path.is_dir():
        raise UsageError(f"{name} is a directory, not a .co file")
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from error


def _same_file(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except OSError:
        return False


def _write(name: str, text: str) -> None:
    """Write in place: the output may be a device, a pipe or a file that others hold open."""
    if name == "-":
        # The bytes of the file, whatever the terminal's encoding is: this is a program, and no text for people.
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
        sys.stdout.buffer.flush()
        return
    try:
        with Path(name).open("w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"cannot write {name}: {error.strerror or error}") from error


def _report(diagnostics: Iterable[Diagnostic]) -> None:
    from croqtile.diagnostics import render

    listed = list(diagnostics)
    spans = [*(d.span for d in listed), *(note.span for d in listed for note in d.notes)]
    files = {span.file for span in spans if span is not None}
    sys.stderr.write(render(listed, {file: _text(file) for file in files}))


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _note(line: str) -> None:
    sys.stderr.write(line + "\n")


def _fail(message: str, code: int) -> int:
    _note(f"choreo: error: {message}")
    return code
