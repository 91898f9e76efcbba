"""Sweep: a grid, seeds, the dynamics to run on them and what to make of the results."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sweeplib.code.plugins import load_plugins
from sweeplib.data.published import references_digest
from sweeplib.design.cluster import ClusterSettings
from sweeplib.design.expressions import Expression
from sweeplib.design.grid import Batch, Grid, Point
from sweeplib.errors import InputError
from sweeplib.numerics.random import checked_seed
from sweeplib.simulation import Case, Recording


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
    wherever they lie. It runs on `cluster`, this machine where None.
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
    cluster: ClusterSettings | None = None
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
        points = self.grid.size_where(self._where(dynamics), self.runs[dynamics].when)
        return points * len(self.seeds_of(dynamics))

    def most_cases_of(self, dynamics: str) -> int:
        """Return the number of cases of one dynamics if its `when` were true everywhere."""
        return self.grid.size_where(self._where(dynamics)) * len(self._run(dynamics).where.get("seed", self.seeds))

    def points(self, dynamics: str) -> Iterator[Point]:
        """Yield the points of the grid that one dynamics runs on."""
        return self.grid.points(self._where(dynamics), self.runs[dynamics].when)

    def batches(self, dynamics: str) -> Iterator[Batch]:
        """Yield the same points some thousands at a time, as columns."""
        return self.grid.batches(self._where(dynamics), self.runs[dynamics].when)

    def seeds_of(self, dynamics: str) -> list[tuple[int, int]]:
        """Return the places, among all seeds, and the values of those that one dynamics runs on."""
        wanted = self._run(dynamics).where.get("seed", self.seeds)
        chosen, known = set(wanted), set(self.seeds)
        missing = next((seed for seed in wanted if seed not in known), None)
        if missing is not None:
            expected = "some of the sweep's `seeds`"
            raise InputError("not a seed of the sweep", key="seed", value=missing, expected=expected)
        return [(place, checked_seed(seed)) for place, seed in enumerate(self.seeds) if seed in chosen]

    def shared(self, dynamics: str) -> dict[str, Any]:
        """Return what the cases of one dynamics have in common: all but their problem, clock and seed."""
        return {
            "dynamics": dynamics,
            "recording": self.recording,
            "options": tuple(sorted(self._run(dynamics).options.items())),
            "root_seed": self.root_seed,
            "pair_by": self.pair_by,
        }

    def clocks(self, columns: Mapping[str, Sequence[Any]], count: int) -> list[float]:
        """Return what the recording times are multiplied by at points; InputError unless it is positive."""
        if self.clock is None:
            return [1.0] * count
        try:
            values = list(map(float, self.clock.evaluated(columns, count)))
        except InputError as error:
            error.key = "times.scale"
            raise
        at = next((at for at, value in enumerate(values) if value <= 0), None)
        if at is not None:
            where = ", ".join(f"{name}={columns[name][at]}" for name in sorted(self.clock.names))
            problem = f"the clock stands still: {self.clock} at {where}"
            raise InputError(problem, key="times.scale", value=values[at], expected="a number greater than 0")
        return values

    def cases(self, dynamics: str) -> Iterator[tuple[tuple[int, ...], Case]]:
        """Yield the index over (dimensions of the grid, seed) and the case, in C order, of all that a dynamics runs on.

        The cases of one point share its Problem.
        """
        seeds, shared = self.seeds_of(dynamics), self.shared(dynamics)
        for batch in self.batches(dynamics):
            clocks = self.clocks(batch.columns, len(batch.problems))
            for index, problem, clock in zip(batch.places.tolist(), batch.problems, clocks, strict=True):
                for place, seed in seeds:
                    yield (*index, place), Case(problem=problem, seed=seed, clock=clock, **shared)

    def probed(self, dynamics: str) -> Iterator[tuple[Point, Case]]:
        """Yield the points, of many a few, that a dynamics runs on, each with its first case: see `Grid.probed`."""
        wanted, shared = self._run(dynamics).where.get("seed"), self.shared(dynamics)
        seed = self.seeds[0] if wanted is None else self.seeds_of(dynamics)[0][1]
        for point in self.grid.probed(self._where(dynamics), self.runs[dynamics].when):
            [clock] = self.clocks({name: [value] for name, value in point.values.items()}, 1)
            yield point, Case(problem=point.problem, seed=seed, clock=clock, **shared)

    def numerics(self, dynamics: str) -> str:
        """Return a hash of the identities of one dynamics' cases, at the probed points: what a stage that runs reads.

        It changes with all that can change a number of a result, and with no message, label or check of input.
        """
        digest = hashlib.blake2b(digest_size=16)
        for _, case in self.probed(dynamics):
            digest.update(case.identity())
        return digest.hexdigest()

    def drawing(self, figure: str) -> dict[str, Any]:
        """Return the options of a figure, a hash of published values in place of their files: what draws it anew."""
        options = self.figures[figure]
        files = options.get("reference")
        return {**options, "reference": references_digest(files)} if isinstance(files, list) else dict(options)

    def _run(self, dynamics: str) -> Run:
        if dynamics not in self.runs:
            raise InputError("the sweep does not run this dynamics", value=dynamics, choices=self.runs)
        return self.runs[dynamics]

    def _where(self, dynamics: str) -> dict[str, tuple[Any, ...]]:
        """Return where on the grid a dynamics runs."""
        return {name: values for name, values in self._run(dynamics).where.items() if name != "seed"}
