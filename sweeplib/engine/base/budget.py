"""Limits of a sweep, such that a config is read, or refused in one line, in two seconds and 500 MB."""

from sweeplib.errors import InputError

FILE_BYTES = 2**19
"""Bytes of a config file, and of its texts when aliases are written out."""
NODES = 20_000
"""Keys, values and lists of a config when aliases are written out."""
DEPTH = 32
"""Levels of lists and mappings in a config."""
INTEGER_DIGITS = 308
"""Digits of a whole number; one with more exceeds a double."""
NAME_LENGTH = 100
"""Bytes of the name of a sweep, an axis or a symbol: folders have these names."""
NAMES = 100
"""Names of a grid: swept, linked, fixed and derived."""
AXES = 16
"""Axes of a grid; arrays have a few more dimensions, and at most 64."""
VALUES = 100_000
"""Values of all axes of a grid together, and recording times."""
ROWS = 1_000_000
"""Rows of a table of points."""
WHERE = 1000
"""Values of an axis, or of seeds, in a `where`: the complete config lists them."""
SEEDS = 1_000_000
"""Replicas of a point."""
POINTS = 10_000_000
"""Points of a grid."""
CASES = 20_000_000
"""Cases: points times seeds, of all dynamics, without `when`. A plan and a run need 160 bytes a case."""
CASE_BYTES = 2**36
"""Bytes of the results of a case, of its overlaps, and of its initial weights."""
STEPS = 2**62
"""Steps of a case: its counters are 64-bit integers."""

PAIRS = 16
"""Pairs of activations of student and teacher on a grid: code is compiled for each."""

PROBES = 1000
"""Points of a larger grid that are checked when it is loaded: this number on its diagonal, and as many corners."""
ASKED = 20_000
"""Points at which a `when` is evaluated when the config is loaded, until it is true at one."""
OPERATIONS = 200_000
"""Operations of expressions at the probes in one pass over a grid: long expressions have fewer probes."""


def refuse_more(things: str, count: int, most: int, *, key: str | None = None, instead: str) -> None:
    """Raise InputError if `count`, the number of `things`, is more than `most`; `instead` is the advice.

    key : of the config, for the message.
    """
    if count > most:
        raise InputError(f"too many {things}", key=key, value=count, expected=f"at most {most}: {instead}")
