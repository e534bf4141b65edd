"""The report: one self-contained HTML page made from the results, with its figures and tables also as files.

``page.write`` is the entry point; ``claims`` and ``cells`` decide what the page says, ``charts`` and ``maps`` draw.
"""
