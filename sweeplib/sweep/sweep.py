"""Sweep: a grid, seeds, the dynamics to run on them and what to make of the results."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sweeplib.errors import InputError
from sweeplib.simulation import Case, Recording
from sweeplib.sweep.expressions import Expression
from sweeplib.sweep.grid import Grid, Point
from sweeplib.sweep.plugins import load_plugins

if TYPE_CHECKING:
    from sweeplib.sweep.clusters import ClusterSettings


def _this_machine() -> "ClusterSettings":
    from sweeplib.sweep.clusters import CLUSTERS

    return CLUSTERS["local"]()


@dataclass(frozen=True)
class Run:
    """One dynamics, the numerical options it runs with, and where it runs.

    That is at the values of axes, or seeds, in `where`, and of these points at those at which `when` is true.
    """

    dynamics: str
    where: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    when: Expression | None = None


@dataclass(frozen=True)
class Sweep:
    """All of a sweep: what a config file says, `source` its complete YAML.

    `clock`, an expression over the names of the grid, multiplies the recording times point by point. `pair_by` names
    the fields of a problem that tell random streams apart, all where None. `plugins` are modules of the user's own, or
    absolute paths of files, which are imported here; `source` has the names of the files alone, as it is the same
    wherever they lie.
    """

    name: str
    grid: Grid
    seeds: tuple[int, ...]
    runs: Mapping[str, Run]
    recording: Recording
    clock: Expression | None = None
    root_seed: int = 0
    pair_by: tuple[str, ...] | None = None
    analyses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    figures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    cluster: "ClusterSettings" = field(default_factory=_this_machine)
    timeout: float | None = None
    plugins: tuple[str, ...] = ()
    source: str = ""

    def __post_init__(self) -> None:
        load_plugins(self.plugins)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values along the dimensions of the grid, then of seeds."""
        return (*self.grid.shape, len(self.seeds))

    @cached_property
    def size(self) -> int:
        """The number of cases of all dynamics."""
        return sum(self.size_of(dynamics) for dynamics in self.runs)

    def size_of(self, dynamics: str) -> int:
        """Return the number of cases of one dynamics, without going through them."""
        where, seeds = self._where(dynamics)
        return self.grid.size_where(where, self.runs[dynamics].when) * len(seeds)

    def points(self, dynamics: str) -> Iterator[Point]:
        """Yield the points of the grid that one dynamics runs on."""
        return self.grid.points(self._where(dynamics)[0], self.runs[dynamics].when)

    def cases(self, dynamics: str) -> Iterator[tuple[tuple[int, ...], Case]]:
        """Yield the index over (dimensions of the grid, seed) and the case, in C order, of all that a dynamics runs on.

        The cases of one point share its Problem.
        """
        where, seeds = self._where(dynamics)
        for point in self.grid.points(where, self.runs[dynamics].when):
            for place, case in self._replicas(dynamics, point, seeds):
                yield (*point.index, place), case

    def probed(self, dynamics: str) -> Iterator[tuple[Point, Case]]:
        """Yield the points, of many a few, that a dynamics runs on, each with its first case: see `Grid.probed`."""
        where, seeds = self._where(dynamics)
        for point in self.grid.probed(where, self.runs[dynamics].when):
            [(_, case)] = self._replicas(dynamics, point, seeds[:1])
            yield point, case

    def clock_at(self, point: Point) -> float:
        """Return what the recording times are multiplied by at a point; InputError unless it is positive."""
        if self.clock is None:
            return 1.0
        try:
            value = float(self.clock.evaluate(point.values))
        except InputError as error:
            error.key = "times.scale"
            raise
        if value <= 0:
            where = ", ".join(f"{name}={point.values[name]}" for name in sorted(self.clock.names))
            problem = f"the clock stands still: {self.clock} at {where}"
            raise InputError(problem, key="times.scale", value=value, expected="a number greater than 0")
        return value

    def _replicas(self, dynamics: str, point: Point, seeds: Iterable[tuple[int, int]]) -> Iterator[tuple[int, Case]]:
        options = tuple(sorted(self.runs[dynamics].options.items()))
        clock = self.clock_at(point)
        for place, seed in seeds:
            case = Case(
                problem=point.problem,
                dynamics=dynamics,
                seed=seed,
                recording=self.recording,
                clock=clock,
                options=options,
                root_seed=self.root_seed,
                pair_by=self.pair_by,
            )
            yield place, case

    def _where(self, dynamics: str) -> tuple[Mapping[str, tuple[Any, ...]], list[tuple[int, int]]]:
        """Return where on the grid a dynamics runs, and the places and values of its seeds."""
        if dynamics not in self.runs:
            raise InputError("the sweep does not run this dynamics", value=dynamics, choices=self.runs)
        where = dict(self.runs[dynamics].where)
        wanted = where.pop("seed", self.seeds)
        missing = next((seed for seed in wanted if seed not in self.seeds), None)
        if missing is not None:
            expected = "some of the sweep's `seeds`"
            raise InputError("not a seed of the sweep", key="seed", value=missing, expected=expected)
        chosen = set(wanted)
        return where, [(place, seed) for place, seed in enumerate(self.seeds) if seed in chosen]
