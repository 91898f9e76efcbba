"""What a sweep may ask for at most, so that a config is read, or refused in one line, in two seconds and 500 MB."""

from sweeplib.errors import InputError

FILE_BYTES = 2**19
"""Of a config file, and of its texts once aliases are written out."""
NODES = 20_000
"""Keys, values and lists of a config, once aliases are written out."""
DEPTH = 32
"""Levels of lists and mappings in a config."""
INTEGER_DIGITS = 308
"""Of a whole number; one with more is no double."""
NAME_LENGTH = 100
"""Bytes of the name of a sweep, an axis or a symbol: folders are called after them."""
NAMES = 100
"""Names of a grid: swept, linked, fixed and derived."""
AXES = 16
"""Axes of a grid; arrays have a few dimensions beside them, 64 at most."""
VALUES = 100_000
"""Values of all axes of a grid together, and recording times."""
WHERE = 1000
"""Values of an axis, or of seeds, in a `where`: the complete config has them one by one."""
SEEDS = 1_000_000
"""Replicas of a point."""
POINTS = 10_000_000
"""Points of a grid."""
CASES = 20_000_000
"""Cases: points, times seeds, of all dynamics, before `when` is asked. Planning holds 330 bytes of each."""
CASE_BYTES = 2**36
"""Bytes of what is recorded of a case, of its overlaps, and of the weights that it starts from."""
STEPS = 2**62
"""Steps of a case: its counters are 64-bit integers."""

PAIRS = 16
"""Pairs of activations of student and teacher on a grid: code is compiled for each."""

PROBES = 1000
"""Points of a larger grid that are looked at as it is loaded: so many on its diagonal, and as many corners."""
ASKED = 20_000
"""Points at which a `when` is asked as it is loaded, until it is true at one."""
OPERATIONS = 200_000
"""Operations of expressions at the probes of one pass over a grid: where expressions are long, probes are fewer."""


def refuse_more(what: str, count: int, most: int, *, key: str | None = None, instead: str) -> None:
    """Raise InputError, its key `key`, where `count` is more than `most`; `instead` says what to do."""
    if count > most:
        raise InputError(f"too many {what}", key=key, value=count, expected=f"at most {most}: {instead}")
