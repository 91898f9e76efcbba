"""Names of runs: that of a kind of run, such as a dynamics, and a word where a sweep has several of a kind."""

import re

RUN_NAME = re.compile(r"[^-]+(-[A-Za-z0-9_]+)?")
"""The name of a run: that of its kind and, if there are several, a word of one's own."""


def kind_of(run: str) -> str:
    """Return the name of the kind of a run, which the run's name begins with."""
    return run.partition("-")[0]
