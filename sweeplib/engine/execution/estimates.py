"""Estimates: seconds of a processor that are known within a factor, of a case, a layout, a dynamics and a plan.

A layout is all cases of a dynamics of one shape and similar cost; a block is some of them, the task of a worker.
"""

import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sweeplib.engine.cases import Case
from sweeplib.engine.process.terminal import bytes_text, counted, duration
from sweeplib.engine.storage.records.files import damaged, read_json

if TYPE_CHECKING:
    from rich.table import Table

    from sweeplib.engine.design.cluster import ClusterSettings
    from sweeplib.engine.storage.store.other_stores import Demand

BLOCK_OVERHEAD = 0.01
"""Seconds of a block in addition to its cases."""
WRITTEN = "plan.json"
"""The file in a sweep's folder with its plan."""

OF_WHOLE_RUNS, OF_PARTS, GUESSED = 1.5, 1.7, 3.0
"""The factors within which costs are known that follow from whole runs, from parts of runs, and from other cases."""
LEAST_NAMED = 0.5
"""The seconds from which on the compilation and the loading of machine code are named."""
SHAPE_SECONDS, MANY_SHAPES = 0.03, 100
"""What a shape takes in store and dataset, about, in addition to its blocks; from how many shapes on this is said."""


@dataclass(frozen=True)
class Cost:
    """Seconds per case, known within a `factor`; `measured`, or between two that were, or extrapolated from others."""

    seconds: float
    measured: bool = True
    factor: float = OF_WHOLE_RUNS

    @property
    def most(self) -> float:
        """Return the seconds that a case takes at most."""
        return self.factor * self.seconds


def case_bytes(case: Case) -> int:
    """Return the bytes of a case's results before compression, including its status and index."""
    arrays = case.simulator.variables(case).values()
    return sum(math.prod(array.shape) * np.dtype(array.dtype).itemsize for array in arrays) + 33


class Range(NamedTuple):
    """Seconds, at least and at most."""

    least: float
    most: float

    def __str__(self) -> str:
        """Return both ends in words, the unit once if it is the same: '20 to 45 s', '26 s', '50 s to 2 min'."""
        least, most = map(duration, self)
        unit = most.partition(" ")[2]
        return most if least == most else f"{least.removesuffix(f' {unit}')} to {most}"

    def over(self, number: int) -> "Range":
        """Return the seconds if a number of workers share the work."""
        return Range(self.least / number, self.most / number)

    @classmethod
    def around(cls, seconds: float, factor: float) -> "Range":
        """Return the range of seconds that are known within a factor."""
        return cls(seconds / factor, seconds * factor)

    @classmethod
    def total(cls, ranges: Iterable["Range"]) -> "Range":
        """Return the sum of ranges, 0 to 0 of none."""
        return cls(*np.sum([(0.0, 0.0), *ranges], axis=0).tolist())


@dataclass(frozen=True)
class LayoutPlan:
    """Cases of one shape and cost: `todo` cases in blocks of `block_size`, with `seconds` and `bytes` per case.

    measured, factor : whether the seconds were, or are extrapolated, and within which factor they are known.
    steps : of a case on average.
    memory : the bytes of the large arrays of a case, such as weights and a training set.
    share : the part of the seconds that is left, below 1 where runs go on from earlier ones.
    suspect : whether a case may end its process, as that of the measurement has ended.
    """

    todo: int
    block_size: int
    seconds: float
    bytes: int
    measured: bool = True
    steps: float = 0.0
    memory: int = 0
    share: float = 1.0
    factor: float = OF_WHOLE_RUNS
    suspect: bool = False

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "LayoutPlan":
        """Return the plan that a record describes; keys that older records lack have defaults."""
        plan = cls(**{"factor": OF_PARTS, "suspect": not record.get("measured", True), **record})
        # up to version 0.3 they could be below 0
        return replace(plan, seconds=max(plan.seconds, 0.0))

    @property
    def blocks(self) -> int:
        """Return the number of blocks that are not done."""
        return -(-self.todo // self.block_size)

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU seconds that are expected to remain."""
        return self.todo * self.seconds * self.share + self.blocks * BLOCK_OVERHEAD

    @property
    def cpu_range(self) -> Range:
        """Return the CPU seconds that remain, at least and at most."""
        return Range.around(self.cpu_seconds, self.factor)


@dataclass(frozen=True)
class DynamicsPlan:
    """The cases of one dynamics: points of the grid, cases, finished cases, and the layouts of the rest.

    copies : the number of cases that the run will take from each other folder of results.
    begun : the number of cases to compute that go on from earlier runs, by where these ended.
    loading : the CPU seconds in which a worker loads machine code before its first cases.
    """

    points: int
    cases: int
    done: int
    layouts: dict[str, LayoutPlan]
    copies: dict[str, int] = field(default_factory=dict)
    begun: dict[str, int] = field(default_factory=dict)
    loading: float = 0.0

    @classmethod
    def of(
        cls, demand: "Demand", layouts: dict[str, LayoutPlan], copied: Mapping[str, int], loading: float
    ) -> "DynamicsPlan":
        """Return the plan of what a sweep needs of a dynamics; the other arguments are the fields of their names."""
        wanted = demand.wanted
        # a point is the cases that differ in their seed alone, which stand side by side in the grid
        points = int((np.diff(wanted.flat // len(wanted.sweep.seeds), prepend=-1) != 0).sum())
        cases = sum(wanted.counts().values())
        done = cases - sum(layout.todo for layout in layouts.values()) - sum(copied.values())
        return cls(points, cases, done, layouts, dict(copied), dict(demand.beginnings), loading)

    @property
    def todo(self) -> int:
        """Return the number of cases to compute."""
        return sum(layout.todo for layout in self.layouts.values())

    @property
    def blocks(self) -> int:
        """Return the number of blocks, each one task."""
        return sum(layout.blocks for layout in self.layouts.values())

    @property
    def seconds_a_case(self) -> float:
        """Return the mean seconds of a case to compute."""
        return sum(layout.todo * layout.seconds for layout in self.layouts.values()) / max(1, self.todo)

    @property
    def guessed(self) -> int:
        """Return the number of cases to compute whose cost was not measured."""
        return sum(layout.todo for layout in self.layouts.values() if not layout.measured)

    @property
    def memory(self) -> int:
        """The bytes of memory that a case to compute takes at most, for its weights and its training set."""
        return max((layout.memory for layout in self.layouts.values() if layout.todo), default=0)

    @property
    def seconds_a_step(self) -> float:
        """The seconds that an SGD step takes on average; 0 where the number of steps is not known."""
        steps = sum(layout.todo * layout.steps for layout in self.layouts.values())
        return self.seconds_a_case * self.todo / steps if steps else 0.0

    @property
    def bytes(self) -> int:
        """Return the bytes that the cases to compute will take on disk, before compression."""
        return sum(layout.todo * layout.bytes for layout in self.layouts.values())

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU seconds that are expected to remain."""
        return sum((layout.cpu_seconds for layout in self.layouts.values()), 0.0)

    @property
    def cpu_range(self) -> Range:
        """Return the CPU seconds that remain, at least and at most."""
        return Range.total(layout.cpu_range for layout in self.layouts.values())


@dataclass(frozen=True)
class Plan:
    """The plan of a sweep by dynamics, for `workers` workers (None if their number is not known in advance).

    It is shown as a table, in notebooks too.

    resources : what the rest takes of a shared cluster at most, in words; None elsewhere.
    compilation : CPU seconds that making the plan took for machine code that was not there; in no other time.
    measured_on : a digest of what the costs depend on but for the seeds. horizons : by dynamics, records of trials.
    """

    name: str
    workers: int | None
    dynamics: dict[str, DynamicsPlan] = field(default_factory=dict)
    advice: tuple[str, ...] = ()
    resources: str | None = None
    compilation: float = 0.0
    measured_on: str = ""
    horizons: dict[str, Any] = field(default_factory=dict)

    @property
    def cases(self) -> dict[str, int]:
        """Return the number of cases of each dynamics."""
        return {name: plan.cases for name, plan in self.dynamics.items()}

    @property
    def costs(self) -> dict[str, Cost]:
        """Return the measured costs, by the name of their pilot, "DYNAMICS/LAYOUT"."""
        return {
            f"{dynamics}/{name}": Cost(layout.seconds, factor=layout.factor)
            for dynamics, plan in self.dynamics.items()
            for name, layout in plan.layouts.items()
            if layout.measured and layout.seconds
        }

    @property
    def todo(self) -> int:
        """Return the number of cases to compute or to take from others."""
        return sum(plan.todo + sum(plan.copies.values()) for plan in self.dynamics.values())

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU seconds that are expected to remain."""
        return sum((plan.cpu_seconds for plan in self.dynamics.values()), self._all_loading)

    @property
    def cpu_range(self) -> Range:
        """Return the CPU seconds that remain, at least and at most."""
        loading = Range.around(self._all_loading, OF_WHOLE_RUNS)
        return Range.total([loading, *(plan.cpu_range for plan in self.dynamics.values())])

    @property
    def _all_loading(self) -> float:
        """Return the CPU seconds in which all workers load machine code, each that of the dynamics it computes."""
        return sum(min(self.workers or 1, plan.blocks) * plan.loading for plan in self.dynamics.values())

    @property
    def loading(self) -> float:
        """Return the CPU seconds in which one worker loads machine code, if it computes cases of all dynamics."""
        return sum(plan.loading for plan in self.dynamics.values() if plan.blocks)

    def loading_of(self, dynamics: str) -> float:
        """Return the CPU seconds in which a worker loads the machine code of a dynamics, 0 if they are not known."""
        return self.dynamics[dynamics].loading if dynamics in self.dynamics else 0.0

    @property
    def sharing(self) -> int | None:
        """Return the number of workers that have something to do; None if it is not known in advance."""
        blocks = sum(plan.blocks for plan in self.dynamics.values())
        return min(self.workers, max(1, blocks)) if self.workers else None

    @property
    def wall_seconds(self) -> float | None:
        """Return the seconds until all is done if the workers share the blocks evenly; None for an unknown number."""
        return self.cpu_seconds / self.sharing if self.sharing else None

    def record(self) -> dict[str, Any]:
        """Return the plan as plain values for `plan.json`, with totals for readers; `of` reads it."""
        totals: dict[str, Any] = {"cpu_hours": self.cpu_seconds / 3600, "wall_seconds": self.wall_seconds}
        totals |= {"cpu_seconds": self.cpu_range._asdict(), "loading": self.loading}
        dynamics = {
            name: asdict(plan) | {"todo": plan.todo, "blocks": plan.blocks, "bytes": plan.bytes}
            for name, plan in self.dynamics.items()
        }
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return values | {"dynamics": dynamics, "advice": list(self.advice)} | totals

    @classmethod
    def on(cls, cluster: "ClusterSettings", workers: int | None, name: str, *others: Any) -> "Plan":
        """Return the plan of the sweep of a name on a cluster with its own or another number of workers.

        others : the plans of the dynamics, and advice in lines.
        """
        plan = cls(name, cluster.expected_workers(workers), *others)
        most = plan.cpu_range.most
        return replace(plan, resources=cluster.resources(most)) if most else plan

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Plan":
        """Return the plan that a record describes; keys that older records lack have defaults."""
        dynamics = dict[str, DynamicsPlan]()
        for name, plan in record["dynamics"].items():
            layouts = {layout: LayoutPlan.of(values) for layout, values in plan["layouts"].items()}
            dynamics[name] = DynamicsPlan(**_fields_of(DynamicsPlan, plan) | {"layouts": layouts})
        # compilation was that of the plan when it was made
        others = {"dynamics": dynamics, "advice": tuple(record["advice"]), "compilation": 0.0}
        return cls(**_fields_of(cls, record) | others)

    @classmethod
    def read(cls, directory: Path) -> "Plan | None":
        """Return the plan in a sweep's directory as it was written, None without one; DamageError if it is damaged."""
        path = directory / WRITTEN
        record = read_json(path)
        try:
            return None if record is None else cls.of(record)
        except (AttributeError, KeyError, TypeError) as error:
            raise damaged(path, f"delete {path}") from error

    def table(self) -> "Table":
        """Return the plan as a table, with the advice below it."""
        from sweeplib.engine.process.terminal import table

        return table(**self.cells())

    def cells(self) -> dict[str, Any]:
        """Return the arguments of `terminal.table`, as plain values, which a record can hold."""
        title = f"{self.name}: {self.cpu_range} of one processor"
        if self.sharing:
            title += f", {self.cpu_range.over(self.sharing)} on {counted(self.workers or 0, 'worker')}"
        headings = ("dynamics", "points", "cases", "done", "to do", "blocks", "on disk", "CPU time")
        rows = []
        for name, plan in self.dynamics.items():
            counts = (plan.points, plan.cases, plan.done, plan.todo, plan.blocks)
            share = f", {100 * plan.cpu_seconds / self.cpu_seconds:.0f} %" if self.cpu_seconds else ""
            rows.append([name, *map("{:,}".format, counts), bytes_text(plan.bytes), f"{plan.cpu_range}{share}"])
        return {"headings": headings, "rows": rows, "title": title, "caption": "\n".join(self._notes())}

    def __repr__(self) -> str:
        """Return the table as text of 120 columns, for notebooks and a shell of Python."""
        from rich.console import Console

        console = Console(width=120, color_system=None, record=True, file=io.StringIO(), force_jupyter=False)
        console.print(self.table())
        return console.export_text().rstrip()

    def show(self) -> None:
        """Write the table to standard error."""
        from sweeplib.engine.process.terminal import console, show

        show(self.table(), console(errors=True))

    def _notes(self) -> list[str]:
        """Return the lines below the table: what the costs leave out, where cases are taken from, and the advice."""
        guessed = {name: plan.guessed for name, plan in self.dynamics.items() if plan.guessed}
        notes = [f"on the cluster {self.resources}"] if self.resources else []
        if self.loading >= LEAST_NAMED:
            notes.append(f"of this, each worker takes up to {duration(self.loading)} to load machine code")
        if self.compilation >= LEAST_NAMED:
            notes.append(f"compilation, before this, took {duration(self.compilation)} of one processor")
        notes += [
            f"{name}: the cost of {counted(count)} is extrapolated, not measured" for name, count in guessed.items()
        ]
        for name, plan in self.dynamics.items():
            notes += [f"{name}: {count:,} cases are taken from {folder}" for folder, count in plan.copies.items()]
            notes += [f"{name}: {count:,} cases go on from {where}" for where, count in plan.begun.items()]
            if plan.memory:
                step = f", a step {duration(plan.seconds_a_step)}" if plan.seconds_a_step else ""
                notes.append(f"{name}: a case takes up to {bytes_text(plan.memory)} of memory{step}")
        shapes = sum(len(plan.layouts) for plan in self.dynamics.values())
        if shapes >= MANY_SHAPES:
            seconds = duration(SHAPE_SECONDS * shapes)
            notes.append(f"{shapes:,} shapes and costs: the store and the dataset take about {seconds} more")
        return [*notes, *self.advice]


def _fields_of(kind: Any, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a record that are fields of a kind of plan."""
    return {field.name: record[field.name] for field in fields(kind) if field.name in record}
