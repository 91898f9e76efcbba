"""Subject: what a sweep is a sweep of, as its config says it: networks, or a function of one's own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sweeplib.engine.design.design import Design, Run
from sweeplib.engine.design.grid import Grid
from sweeplib.engine.language import Expression, FormulaWithNames
from sweeplib.engine.simulator import Simulator

FigureEntry = tuple[str, dict[str, Any]]
"""An entry of `figures`: its name and options."""


@dataclass(frozen=True)
class Subject:
    """The part of a config that its simulator reads.

    fixed, formulas : values that all points share, plain ones, and those that are formulas with names of the grid.
    used : names of the grid that this part uses, but for those of expressions.
    expressions : expressions of names of the grid, by the keys of the config.
    recording, clock : what is recorded, and the unit of its times.
    runs : returns the runs on a grid with some seeds.
    check : raises InputError, with the key, for a sweep that cannot be run.
    written : returns the sections of the complete config that are not as the config has them.
    figures : returns the default figures, those of each kind in the order in which they are tried.
    function : the file of the function with its name, `PATH:NAME`, or the declaration of a command, if one is called.
    plugin : what other processes import for it.
    checkpoint : the seconds between two states of a case that are kept, None if it has no states.
    """

    simulator: Simulator
    fixed: Mapping[str, Any]
    recording: Any
    runs: Callable[[Grid, tuple[int, ...]], dict[str, Run]]
    check: Callable[[Design], None]
    written: Callable[[Design], dict[str, Any]]
    figures: Callable[[Design], list[tuple[FigureEntry, ...]]]
    formulas: Mapping[str, FormulaWithNames] = field(default_factory=dict)
    used: frozenset[str] = frozenset()
    expressions: Mapping[str, Expression] = field(default_factory=dict)
    clock: Any = None
    function: str | Mapping[str, Any] | None = None
    plugin: str = ""
    checkpoint: float | None = None
