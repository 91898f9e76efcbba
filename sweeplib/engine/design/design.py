"""Design: a grid, seeds, the dynamics to run on them, and the analyses and figures of the results of a sweep.

A run is a dynamics with its options, under a name of its own; methods call that name `dynamics`. Runs of one law are
several dynamics that are exact for it, the cheapest of which runs at each point. A point of the grid has the first of
the sweep's seeds, as many as its count says. `points` as an argument is a table of the values of the grid's names, a
row a point. A clock is the unit of the recording times, which may differ from point to point.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sweeplib.engine.base.budget import SEEDS
from sweeplib.engine.base.table import Column, Table
from sweeplib.engine.cases import Case, Cases
from sweeplib.engine.code.plugins import load_plugins, plugin_files
from sweeplib.engine.code.user_code import command_of, file_in, is_file, path_in_command, with_files, words_of
from sweeplib.engine.design.choices import Choice, is_a_choice
from sweeplib.engine.design.cluster import ClusterSettings
from sweeplib.engine.design.fields import options_of
from sweeplib.engine.design.grid import Grid
from sweeplib.engine.design.places import Condition
from sweeplib.engine.design.questions import Question, RowCounts
from sweeplib.engine.files.published import references_digest
from sweeplib.engine.language import Expression
from sweeplib.engine.run_names import kind_of
from sweeplib.engine.seeds import checked_seed
from sweeplib.engine.simulator import Simulator
from sweeplib.errors import InputError, errors_at

Options = tuple[tuple[str, Any], ...]
"""The numerical options of a run, sorted pairs of name and value."""


def replica_counts(replicas: Expression | RowCounts, points: Table) -> NDArray[np.int64]:
    """Return the number (n,) of replicas of n points; InputError unless these are whole numbers from 0 to `SEEDS`."""

    def counted(columns: Mapping[str, Sequence[Any]], count: int) -> list[int]:
        """Return the number of replicas of each of `count` points, from the columns of the names it depends on."""
        with errors_at("seeds"):
            values = replicas.evaluated(columns, count)
        for at, value in enumerate(values):
            if value != value // 1 or not 0 <= value <= SEEDS:
                where = ", ".join(f"{name}={columns[name][at]}" for name in sorted(replicas.names))
                problem = f"not a number of seeds: {replicas} at {where}"
                raise InputError(problem, key="seeds", value=value, expected=f"a whole number from 0 to {SEEDS}")
        return [int(value) for value in values]

    return points.over(sorted(replicas.names), counted).array(np.int64)


class RunPoints(NamedTuple):
    """The n points of a run, with a case at each.

    flat (n,) : the flat index over (grid dims, seed) of the point with the first seed.
    counts (n,) : how many of the sweep's seeds the point has.
    cases : of seed 0.
    """

    flat: NDArray[np.int64]
    counts: NDArray[np.int64]
    cases: Cases


@dataclass(frozen=True)
class Run:
    """A run of a dynamics, its numerical options, and where it runs; there may be several of a dynamics.

    where : the values of axes, or seeds, by name, at which it runs; along other axes it runs at all values.
    when : an expression that is true where it runs, in addition.
    law : the name of several runs of one law, the cheapest of which runs at each point; the dataset has them as one.
    """

    dynamics: str
    where: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    when: Expression | None = None
    law: str | None = None


@dataclass(frozen=True)
class Design:
    """A complete sweep: the content of a config file.

    runs, analyses, figures, questions : by name; analyses and figures with their options.
    recording, clock : what is recorded, and the unit of the recording times at each point; both are of its simulator.
    replicas : how many of the first `seeds` a point has, all if None; rounds add to it until `questions` are answered.
    pair_by : the fields of a problem that distinguish random streams, all if None.
    cluster : on which the sweep runs, this machine if None.
    timeout, checkpoint : seconds: the limit of a case, and the time between two states of a case that are kept.
    publish : the address to which the dataset is sent. authors, licence : named in the dataset.
    table : the path of a table of points. bases : the configs that the sweep's own starts from.
    plugins : the user's modules, or absolute paths of files, imported here. function : what the sweep calls, named
        `PATH:NAME`, or a command, declared as in its config; its file or declaration is the last of the plugins.
    source : the complete YAML, with only the names of files, so that it does not depend on the folder.
    """

    name: str
    grid: Grid
    seeds: tuple[int, ...]
    runs: Mapping[str, Run]
    recording: Any
    clock: Any = None
    replicas: Expression | RowCounts | None = None
    root_seed: int = 0
    pair_by: tuple[str, ...] | None = None
    analyses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    figures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    questions: Mapping[str, Question] = field(default_factory=dict)
    cluster: ClusterSettings | None = None
    timeout: float | None = None
    checkpoint: float | None = None
    publish: str | None = None
    authors: tuple[str, ...] = ()
    licence: str | None = None
    table: str | None = None
    bases: tuple[Path, ...] = ()
    plugins: tuple[str, ...] = ()
    function: str | Mapping[str, Any] | None = None
    source: str = ""

    def __post_init__(self) -> None:
        load_plugins(self.plugins)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of values along the dimensions of the grid, then of seeds."""
        return (*self.grid.shape, len(self.seeds))

    @cached_property
    def size(self) -> int:
        """Return the number of cases of all dynamics."""
        return sum(self.size_of(dynamics) for dynamics in self.runs)

    def size_of(self, dynamics: str) -> int:
        """Return the number of cases of one dynamics, without enumerating them."""
        return sum(self._sizes(dynamics))

    def has_cases(self, dynamics: str) -> bool:
        """Return whether there is any case of one dynamics: seeds that are an expression may be none at all points."""
        return any(self._sizes(dynamics))

    def _sizes(self, dynamics: str) -> Iterator[int]:
        """Yield the number of cases of one dynamics at thousands of points, and at the next ones, until all have been.

        At all at once where each has all seeds.
        """
        places = [place for place, _ in self.seeds_of(dynamics)]
        where, when = self._where(dynamics), self.when(dynamics)
        if self.replicas is None:
            yield self.grid.size_where(where, when) * len(places)
        else:
            for _, table in self.grid.batches(where, when, self.replicas.names):
                yield int(np.searchsorted(places, self.counts(table)).sum())

    @property
    def simulator(self) -> Simulator:
        """Return what computes its cases."""
        return self.grid.simulator

    @cached_property
    def laws(self) -> dict[str, tuple[str, ...]]:
        """Return the runs by their name in the dataset, which has those of one law under its name."""
        names: dict[str, tuple[str, ...]] = {}
        for name, run in self.runs.items():
            names[run.law or name] = (*names.get(run.law or name, ()), name)
        return names

    @cached_property
    def choices(self) -> dict[str, NDArray[np.int8]]:
        """Return what `Choice` knows of each point of the grid: a memory by law, filled as points are asked for.

        The value is the index of the run of the law that the point has, −1 for none, or `UNKNOWN`.
        """
        return {}

    @cached_property
    def _of_each_code(self) -> dict[str, Table]:
        """Return the points of each run with another code, as they are asked for: all points are looked at for them."""
        return {}

    @property
    def takes_the_cheapest(self) -> bool:
        """Return whether the dataset has several runs as one, of which the cheapest ran."""
        return len(self.laws) < len(self.runs)

    def when(self, dynamics: str) -> Condition | None:
        """Return the condition under which a run runs at a point of its `where`, None for all."""
        return Choice(self, dynamics) if is_a_choice(self, dynamics) else self._run(dynamics).when

    def points_in(self, dynamics: str) -> int:
        """Return the number of points in the part of the grid that a run's `where` selects, whatever its `when`."""
        return self.grid.size_where(self._where(dynamics))

    def most_cases_of(self, dynamics: str) -> int:
        """Return the number of cases of one dynamics if its `when` were true everywhere."""
        return self.points_in(dynamics) * len(self._run(dynamics).where.get("seed", self.seeds))

    def points(self, dynamics: str) -> RunPoints:
        """Return the points of the grid that one dynamics runs on, each with a case of seed 0."""
        places, table = self.grid.points(self._where(dynamics), self.when(dynamics))
        flat = np.ravel_multi_index((*places.T, np.zeros(len(places), np.int64)), self.shape)
        return RunPoints(flat, self.counts(table), self.cases_at(dynamics, table, 0))

    def cases_at(self, dynamics: str, points: Table, seed: int = 0) -> Cases:
        """Return a case of one dynamics with this seed at each of some points.

        seed : 0 is any, where only what all seeds share is wanted, such as the cost of a case.
        """
        fields = {"dynamics": kind_of(dynamics), "recording": self.recording, "seed": seed}
        fields |= {"root_seed": self.root_seed, "pair_by": self.pair_by}
        columns = {name: points.constant(value) for name, value in fields.items()}
        columns |= {"clock": self.clocks(points), "options": self._options(dynamics, points)}
        return self.simulator.cases_at(points, columns)

    def seeds_of(self, dynamics: str) -> list[tuple[int, int]]:
        """Return the indices (among all seeds) and the values of the seeds that one dynamics runs on."""
        wanted = self._run(dynamics).where.get("seed", self.seeds)
        chosen, seeds = set(wanted), set(self.seeds)
        missing = next((seed for seed in wanted if seed not in seeds), None)
        if missing is not None:
            expected = "some of the sweep's `seeds`"
            raise InputError("not a seed of the sweep", key="seed", value=missing, expected=expected)
        return [(place, checked_seed(seed)) for place, seed in enumerate(self.seeds) if seed in chosen]

    def _options(self, dynamics: str, points: Table) -> Column:
        """Return the column of `Options` of one run at points: fixed ones, and those that are names of the grid."""
        fixed, names = self._run(dynamics).options, options_of(dynamics, points.columns)

        def options(columns: Mapping[str, Sequence[Any]], count: int) -> list[Options]:
            """Return the options of the run at each of `count` points: those fixed, and those of the grid."""
            rows = zip(*columns.values(), strict=True) if names else [()] * count
            return [tuple(sorted({**fixed, **dict(zip(names, row, strict=True))}.items())) for row in rows]

        return points.over([f"{dynamics}.{name}" for name in names], options)

    def clocks(self, points: Table) -> Column:
        """Return the column of the unit of the recording times at points; InputError unless it is positive."""
        clock = self.clock
        if clock is None:
            return points.constant(1.0)
        return points.over(sorted(self.names_of_clock), clock.lengths)

    @property
    def names_of_clock(self) -> frozenset[str]:
        """Return the names of the grid on which the unit of the recording times depends."""
        return frozenset() if self.clock is None else self.clock.names(self.grid.names)

    @property
    def time_attributes(self) -> dict[str, Any]:
        """Return the attributes of the recording times, which say their unit."""
        return self.simulator.label("time") if self.clock is None else self.clock.attributes()

    def counts(self, points: Table) -> NDArray[np.int64]:
        """Return the number (n,) of seeds that each point has; InputError unless these are whole numbers from 0."""
        return np.full(len(points), len(self.seeds)) if self.replicas is None else replica_counts(self.replicas, points)

    def own_counts(self, points: Table) -> NDArray[np.int64]:
        """Return the number (n,) of seeds that the config gives points, whatever rounds have added."""
        counts = self.replicas
        if not isinstance(counts, RowCounts):
            return self.counts(points)
        return np.full(len(points), counts.most) if counts.seeds is None else replica_counts(counts.seeds, points)

    def cases(self, dynamics: str) -> Iterator[tuple[tuple[int, ...], Case]]:
        """Yield the index over (dimensions of the grid, seed) and the case, in C order, of each case of a dynamics.

        The cases of one point differ in their seed alone, and share the objects of all other fields.
        """
        seeds, points = self.seeds_of(dynamics), self.points(dynamics)
        index = np.array(np.unravel_index(points.flat, self.shape)).T[:, :-1].tolist()
        for at, count, case in zip(index, points.counts.tolist(), points.cases, strict=True):
            for place, seed in seeds:
                if place < count:
                    yield (*at, place), replace(case, seed=seed)

    def probed(self, dynamics: str) -> Cases:
        """Return the first case of each probed point of a dynamics: see `Grid.probed`."""
        wanted = self._run(dynamics).where.get("seed")
        seed = checked_seed(self.seeds[0]) if wanted is None else self.seeds_of(dynamics)[0][1]
        return self.cases_at(dynamics, self.grid.probed(self._where(dynamics), self.when(dynamics)), seed)

    def numerics(self, dynamics: str) -> str:
        """Return a hash of the identities of one dynamics' cases at some points; a workflow reruns on a change.

        It changes with everything that can change a number of a result, not with messages, labels or input checks: the
        points are those that are probed, and one for each code that cases run (`Grid.of_each_code`).
        """
        if dynamics not in self._of_each_code:
            self._of_each_code[dynamics] = self.grid.of_each_code(self._where(dynamics), self.when(dynamics))
        digest = hashlib.blake2b(digest_size=16)
        for cases in (self.probed(dynamics), self.cases_at(dynamics, self._of_each_code[dynamics])):
            digest.update(cases.identities().tobytes())
        return digest.hexdigest()

    def description(self, dynamics: str) -> str:
        """Return a text of everything in the sweep on which the cases of one dynamics depend, and their order."""
        grid, run = self.grid, self._run(dynamics)
        derived = {name: expression.text for name, expression in grid.derived.items()}
        when = self.when(dynamics)
        chosen = (dict(run.where), dict(run.options), when and when.text)
        replicas = self.seeds if self.replicas is None else (self.seeds, self.replicas.text)
        points = grid.axes, dict(grid.fixed), derived, self.clock and self.clock.text
        return repr((dynamics, *points, replicas, self.recording.key, chosen, self.root_seed, self.pair_by))

    def drawing(self, figure: str) -> dict[str, Any]:
        """Return the options of a figure, with published values as a hash of their content: redraws depend on this."""
        options = self.figures[figure]
        files = options.get("reference")
        return {**options, "reference": references_digest(files)} if isinstance(files, list) else dict(options)

    def files(self) -> list[Path]:
        """Return the user's files that the sweep is made from, beside its config."""
        names = [name for name in self.user_names() if is_file(name) and name not in self.plugins]
        return [*self.bases, *plugin_files(self.plugins), *dict.fromkeys([*map(Path, names), *self.simulator.files])]

    def with_files(self, convert: Callable[[list[str]], Iterable[str]]) -> dict[str, Any]:
        """Return the keys of the sweep's config that name files of the user, with their values, names converted.

        convert : called with several names at once, returns the new ones.
        """
        table = {} if self.table is None else {"points": self.table}
        function = {} if self.function is None else {"simulator": self.function}
        if isinstance(self.function, Mapping):
            parts = map(file_in, words_of(self.function["command"]))
            command = command_of(
                before + path_in_command("".join(convert([path]))) if path else before for before, path in parts
            )
            function = {"simulator": {**self.function, "command": command}}
        # the last one is that of the function, which a config has under `simulator`
        plugins = [*(self.plugins if self.function is None else self.plugins[:-1])]
        return with_files({"plugins": plugins, "figures": self.figures, **table, **function}, convert)

    def user_names(self) -> list[str]:
        """Return the entries of the sweep's config that may be the paths of the user's files, such as plugins."""
        all_names: list[str] = []

        def collect(names: list[str]) -> list[str]:
            """Return entries unchanged, and remember them: no conversion."""
            all_names.extend(names)
            return names

        self.with_files(collect)
        return all_names

    def _run(self, dynamics: str) -> Run:
        """Return the run of this name; InputError if there is none."""
        if dynamics not in self.runs:
            raise InputError("the sweep does not run this dynamics", value=dynamics, choices=self.runs)
        return self.runs[dynamics]

    def _where(self, dynamics: str) -> dict[str, tuple[Any, ...]]:
        """Return the values of axes, by name, to which a run is confined: its `where` without seeds."""
        return {name: values for name, values in self._run(dynamics).where.items() if name != "seed"}
