"""The rules of the memory model, by kind of event: what the analysed program and the state of its threads must be.

Each rule takes the threads' place in the program (``cursor.py``), their state, the event and what the path knows of the
trip counts, and returns the state after the event or raises Refusal.
"""
