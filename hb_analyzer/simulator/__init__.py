"""An operational simulator of the concurrency model: what a program *does*, beside what the engine *proves* about it.

It runs a :class:`~hb_analyzer.model.Program` step by step under arbitrary schedules and reports what it observes. It is
the engine's opponent, so it shares nothing with it that decides: of this package it imports the model, the report's
data classes and plain tables alone, and knows no happens-before graph.

* ``code.py``: a program at given trip counts as one straight line of instructions per thread;
* ``layout.py``: which bytes of which buffers coincide;
* ``machine.py``: the state of one execution and its transitions;
* ``schedules.py``: random and adversarial schedules;
* ``explore.py``: all schedules, up to those that cannot differ;
* ``witness.py``: search for a schedule that shows something; smaller ones; tables.
"""
