"""Everything that the compiler says to its user: one class per kind of message, by the phase that finds it.

Passes collect diagnostics and raise :class:`CompileError` with all of them; ``base.py`` is the only place that renders
one. All classes can be imported from here.
"""

# ruff: noqa: F403  (more than a hundred classes, none of which needs to be named twice)
from croqtile.diagnostics.analysis import *
from croqtile.diagnostics.base import CompileError as CompileError
from croqtile.diagnostics.base import Diagnostic as Diagnostic
from croqtile.diagnostics.base import Note as Note
from croqtile.diagnostics.base import render as render
from croqtile.diagnostics.names import *
from croqtile.diagnostics.operations import *
from croqtile.diagnostics.roles import *
from croqtile.diagnostics.source import *
from croqtile.diagnostics.structure import *
from croqtile.diagnostics.syntax import *
from croqtile.diagnostics.views import *
