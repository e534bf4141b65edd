"""The program behind ``./ae``: the Invoke tasks, with errors that say what to type instead."""

from __future__ import annotations

import difflib
import re
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version

from invoke.collection import Collection
from invoke.exceptions import Exit, ParseError
from invoke.parser.context import ParserContext
from invoke.program import Program

from reproduce.runners import EXIT_INTERRUPTED, EXIT_USAGE

# Options of several commands in one line that hold for all of them; Invoke gives an option to one command alone.
SHARED = ("dry_run", "fresh", "gpu", "results", "runner", "slurm")


def main(namespace: Collection) -> None:
    """Runs what the command line asks for, and exits with its status: 2 for a wrong command line."""
    program = _Program(
        name="sala-reproduction", binary="./ae", version=version("sala-reproduction"), namespace=namespace
    )
    try:
        # `ae` holds Ctrl-C back until here: while Python imports modules, it would end in a traceback.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        program.run()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)


class _Program(Program):
    def parse_tasks(self) -> None:
        try:
            super().parse_tasks()
        except ParseError as error:
            raise Exit(explain(error), EXIT_USAGE) from None
        share_options(self.tasks)

    def execute(self) -> None:
        try:
            super().execute()
        except KeyboardInterrupt:
            raise Exit(code=EXIT_INTERRUPTED) from None


def share_options(commands: Sequence[ParserContext]) -> None:
    """Gives the options in SHARED to every command that has them. Raises Exit if one is given twice and differs, or if
    a command beside ``--dry-run`` has none and would really run."""
    for name in SHARED:
        # `clean --results` is a switch, and no folder.
        having = [each for each in commands if name in each.args and (each.name, name) != ("clean", "results")]
        given = list(dict.fromkeys(each.args[name].value for each in having if each.args[name].got_value))
        flag = f"--{name.replace('_', '-')}"
        if len(given) > 1:
            values = " and ".join(f"`{value}`" for value in given)
            raise Exit(f"{flag} holds for every command of the line, and is {values}: give them one by one", EXIT_USAGE)
        if given and name == "dry_run" and len(having) < len(commands):
            other = next(each.name for each in commands if each not in having)
            raise Exit(f"{other} has no {flag} and would really run: give the commands one by one", EXIT_USAGE)
        for each in having if given else ():
            each.args[name].set_value(given[0], cast=False)


def explain(error: ParseError) -> str:
    """What was wrong with the command line, in which command, and where its options are listed."""
    text, context = str(error), error.context
    command = context.name if context and context.name else ""
    place = f"./ae {command} --help" if command else "./ae --help"
    if match := re.match(r"No idea what '(.*)' is!", text, re.DOTALL):
        word = match[1]
        # Outside of a command, Invoke's own options are near to those of commands, and mean something else.
        known = [flag for flag in context.flag_names() if flag.startswith("--")] if context and command else []
        near = difflib.get_close_matches(word.split("=")[0], known, 1)
        kind = "option" if word.startswith("-") else "argument"
        hint = f"; did you mean `{near[0]}`?" if near else ""
        if not command and word.lstrip("-").partition("=")[0].replace("-", "_") in SHARED:
            hint = f" of its own: it goes behind a command, as in `./ae all {word}`"
        return f"{command or './ae'} has no {kind} `{word}`{hint}\n    {place} lists what it has."
    if match := re.match(r"Flag <Argument: ([\w-]+).*> (needed value|doesn't take any value)", text):
        needs = "needs a value" if match[2] == "needed value" else "takes no value"
        return f"{command}: --{match[1].replace('_', '-')} {needs}\n    {place} lists the options."
    return f"{command or './ae'}: {text}\n    {place} lists the options."
