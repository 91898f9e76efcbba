"""The plan of a sweep: the cases it needs, those that exist, and the cost of the rest on this machine."""

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.engine.design.design import Design
from sweeplib.engine.execution.advice import advice, round_lines
from sweeplib.engine.execution.block_size import BLOCK_OVERHEAD, block_size, case_bytes, even
from sweeplib.engine.execution.calibration import (
    PILOT_CASES,
    Calibration,
    Cost,
    Pilot,
    basis,
    cases_in,
    costs_in,
    plan_on,
    spread,
)
from sweeplib.engine.execution.clusters import cluster_of, refuse_large_cases
from sweeplib.engine.execution.horizons import horizon_lines, shares, trials_in, unexited
from sweeplib.engine.execution.progress import Steps
from sweeplib.engine.process.terminal import bytes_text, counted, duration
from sweeplib.engine.simulator import home_of
from sweeplib.engine.storage.records.artefacts import cases_made_from
from sweeplib.engine.storage.records.config_files import write_complete_config
from sweeplib.engine.storage.records.files import damaged, read_json, write_changed, write_json
from sweeplib.engine.storage.store.inventory import Inventory, inventory
from sweeplib.engine.storage.store.other_stores import Beginnings, OtherCases, other_cases
from sweeplib.engine.storage.store.run_store import RunStore

if TYPE_CHECKING:
    from rich.table import Table

SHAPE_SECONDS, MANY_SHAPES = 0.1, 100
"""What a shape takes in store and dataset, about, in addition to its blocks; from how many shapes on this is said."""


@dataclass(frozen=True)
class LayoutPlan:
    """Cases of one shape and cost: `todo` cases in blocks of `block_size`, with `seconds` and `bytes` per case.

    The seconds are `measured` or extrapolated; a `share` of them is left where runs go on. A case takes `steps` SGD
    steps on average, and its weights and training set up to `memory` bytes of memory.
    """

    todo: int
    block_size: int
    seconds: float
    bytes: int
    measured: bool = True
    steps: float = 0.0
    memory: int = 0
    share: float = 1.0

    @property
    def blocks(self) -> int:
        """Return the number of blocks that are not done."""
        return -(-self.todo // self.block_size)

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU seconds that remain."""
        return self.todo * self.seconds * self.share + self.blocks * BLOCK_OVERHEAD


@dataclass(frozen=True)
class DynamicsPlan:
    """The cases of one dynamics: points of the grid, cases, finished cases, and the layouts of the rest.

    copies : the number of cases that the run will take from each other folder of results.
    begun : the number of cases to compute that go on from earlier runs, by where these ended.
    """

    points: int
    cases: int
    done: int
    layouts: dict[str, LayoutPlan]
    copies: dict[str, int] = field(default_factory=dict)
    begun: dict[str, int] = field(default_factory=dict)

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
        """Return the CPU seconds that remain."""
        return sum((layout.cpu_seconds for layout in self.layouts.values()), 0.0)


@dataclass(frozen=True)
class Plan:
    """The plan of a sweep by dynamics, for `workers` workers (None if their number is not known in advance).

    It is shown as a table, in notebooks too. `resources` says what the rest takes of a shared cluster, None elsewhere.
    """

    name: str
    workers: int | None
    dynamics: dict[str, DynamicsPlan] = field(default_factory=dict)
    advice: tuple[str, ...] = ()
    resources: str | None = None

    @property
    def todo(self) -> int:
        """Return the number of cases to compute or to take from others."""
        return sum(plan.todo + sum(plan.copies.values()) for plan in self.dynamics.values())

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU seconds that remain."""
        return sum((plan.cpu_seconds for plan in self.dynamics.values()), 0.0)

    @property
    def wall_seconds(self) -> float | None:
        """Return the seconds until all is done if the workers share the blocks evenly; None for an unknown number."""
        blocks = sum(plan.blocks for plan in self.dynamics.values())
        return self.cpu_seconds / min(self.workers, max(1, blocks)) if self.workers else None

    def record(self) -> dict[str, Any]:
        """Return the plan as plain values, totals included."""
        totals = {"cpu_hours": self.cpu_seconds / 3600, "wall_seconds": self.wall_seconds}
        dynamics = {
            name: asdict(plan) | {"todo": plan.todo, "blocks": plan.blocks, "bytes": plan.bytes}
            for name, plan in self.dynamics.items()
        }
        whole = {"name": self.name, "workers": self.workers, "dynamics": dynamics, "advice": list(self.advice)}
        return whole | totals | {"resources": self.resources}

    def json(self, sweep: Design, directory: Path) -> str:
        """Return the plan as JSON, with the cases of the sweep as `rows`: columns for each dynamics."""
        rows = {name: inventory(sweep, name, RunStore(directory, name)).rows() for name in sweep.runs}
        return json.dumps(self.record() | {"rows": rows}, indent=1)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Plan":
        """Return the plan that `record` describes."""
        dynamics = {
            name: DynamicsPlan(
                plan["points"],
                plan["cases"],
                plan["done"],
                {layout: LayoutPlan(**values) for layout, values in plan["layouts"].items()},
                plan.get("copies", {}),
                plan.get("begun", {}),
            )
            for name, plan in record["dynamics"].items()
        }
        return cls(record["name"], record["workers"], dynamics, tuple(record["advice"]), record["resources"])

    def table(self) -> "Table":
        """Return the plan as a table, with the advice below it."""
        from sweeplib.engine.process.terminal import table

        return table(**self.cells())

    def cells(self) -> dict[str, Any]:
        """Return what the table shows, as plain values."""
        wall, workers = self.wall_seconds, counted(self.workers or 0, "worker")
        title = f"{self.name}: {duration(self.cpu_seconds)} of one processor"
        title += "" if wall is None else f", {duration(wall)} on {workers}"
        headings = ("dynamics", "points", "cases", "done", "to do", "blocks", "on disk", "CPU time")
        rows = []
        for name, plan in self.dynamics.items():
            counts = (plan.points, plan.cases, plan.done, plan.todo, plan.blocks)
            share = f", {100 * plan.cpu_seconds / self.cpu_seconds:.0f} %" if self.cpu_seconds else ""
            rows.append([name, *map("{:,}".format, counts), bytes_text(plan.bytes), duration(plan.cpu_seconds) + share])
        return {"headings": headings, "rows": rows, "title": title, "caption": "\n".join(self._notes())}

    def __repr__(self) -> str:
        from rich.console import Console

        console = Console(width=120, color_system=None, record=True, file=io.StringIO(), force_jupyter=False)
        console.print(self.table())
        return console.export_text().rstrip()

    def show(self) -> None:
        """Write the table to standard error."""
        from sweeplib.engine.process.terminal import console, show

        show(self.table(), console(errors=True))

    def _notes(self) -> list[str]:
        """Return what is said below the table, in lines."""
        guessed = {name: plan.guessed for name, plan in self.dynamics.items() if plan.guessed}
        notes = [f"on the cluster {self.resources}"] if self.resources else []
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
            more = duration(SHAPE_SECONDS * shapes)
            notes.append(f"{shapes:,} shapes and costs: the store and the dataset take about {more} more")
        return [*notes, *self.advice]


@dataclass(frozen=True)
class Demand:
    """What a plan is made of for one dynamics: its `wanted` cases, and the `others`, of other folders.

    `todo` cases of each layout are to be computed, and have a pilot.
    """

    store: RunStore
    wanted: Inventory
    others: OtherCases
    todo: dict[str, int]
    pilots: dict[str, Pilot]


def write_plan(sweep: Design, directory: Path, *, workers: int | None = None, progress: bool = True) -> Plan:
    """Write a sweep's plan to `plan.json` under `directory`; return it.

    The run uses its block sizes and costs. Its done.json is the same for the same cases, however many of them are done
    and however fast the machine is. Costs that the plan before measured are used again if only the seeds have changed.
    The plan of the same cases stays once all of them are done: its costs are known to the next run with more seeds.
    With `progress`, each step is reported when it begins.
    """
    steps = Steps(sweep.name if progress else None)
    memory, measured_on = cluster_of(sweep).worker_memory(workers), basis(sweep)
    before = plan_on(directory / "plan.json", measured_on)
    earlier_costs = costs_in(before)
    with Calibration(sweep.plugins, steps, memory, sweep.timeout, home_of(sweep.simulator)) as calibration:
        with steps.step(f"planning {counted(sweep.size)}"):
            demands = {name: _demand(sweep, name, directory) for name in sweep.runs}
            for name, demand in demands.items():
                if demand.todo:
                    refuse_large_cases(sweep, name, workers)
        pilots = [pilot for demand in demands.values() for pilot in demand.pilots.values()]
        costs = earlier_costs | calibration.costs(pilot for pilot in pilots if pilot.name not in earlier_costs)
        plans = {name: _plan_at_costs(sweep, demand, costs) for name, demand in demands.items()}
        advised = advice(plans, {name: demand.pilots for name, demand in demands.items()}, calibration)
        texts = tuple(line for demand in demands.values() for line in demand.others.unread)
        texts += tuple(item.text for item in advised)
        trials = {} if any(pilot.name not in earlier_costs for pilot in pilots) else trials_in(before)
        unit = sweep.time_attributes
        for name, demand in demands.items():
            missing = [case for pilot in demand.pilots.values() for case in pilot.cases]
            stored = unexited(demand.store, demand.wanted)
            lines, trials[name] = horizon_lines(name, missing, stored, calibration, trials.get(name), unit)
            texts += tuple(lines)
    plan = plan_of(sweep, plans, texts + round_lines(sweep), workers)
    if not (directory / "config.yaml").exists():
        write_complete_config(sweep, directory)  # that of a run or of a dataset stays
    cases = {name: dynamics_plan.cases for name, dynamics_plan in plans.items()}
    if plan.todo or cases_in(before) != cases:
        horizons = {name: trial and asdict(trial) for name, trial in trials.items()}
        write_json(directory / "plan.json", plan.record() | {"measured_on": measured_on, "horizons": horizons})
    write_changed(directory / "plan.done.json", {"cases": cases, "made_from": cases_made_from(sweep)})
    return plan


def plan_of(
    sweep: Design, dynamics: dict[str, DynamicsPlan], advice: tuple[str, ...], workers: int | None = None
) -> Plan:
    """Return the plan of the dynamics of a sweep, for its cluster with its own or another number of workers."""
    cluster = cluster_of(sweep)
    seconds = sum(dynamics_plan.cpu_seconds for dynamics_plan in dynamics.values())
    resources = cluster.resources(seconds) if seconds else None
    return Plan(sweep.name, cluster.expected_workers(workers), dynamics, advice, resources)


def plan_when_done(directory: Path) -> dict[str, Any] | None:
    """Return what the table of the plan in a directory shows once all is done; None with advice, or more cases now."""
    plan, now = Plan.of(read_json(directory / "plan.json") or {}), read_json(directory / "plan.done.json") or {}
    done = {name: DynamicsPlan(entry.points, entry.cases, entry.cases, {}) for name, entry in plan.dynamics.items()}
    is_old = {name: entry.cases for name, entry in plan.dynamics.items()} != now.get("cases")
    return None if plan.advice or is_old else replace(plan, dynamics=done, resources=None).cells()


def planned_layouts(directory: Path, dynamics: str) -> dict[str, LayoutPlan]:
    """Return the layouts of a dynamics in `plan.json`, as they were when it was written; {} without a plan.

    SweeplibError if the file is damaged.
    """
    path = directory / "plan.json"
    plan = read_json(path)
    if plan is None:
        return {}
    try:
        layouts = plan["dynamics"].get(dynamics, {"layouts": {}})["layouts"]
        return {name: LayoutPlan(**layout) for name, layout in layouts.items()}
    except (AttributeError, KeyError, TypeError) as error:
        raise damaged(path, f"delete {path}") from error


def planned_advice(directory: Path, cases: Mapping[str, int]) -> tuple[str, ...]:
    """Return the advice in `plan.json`, none if the plan is of other numbers of `cases` by dynamics."""
    plan = read_json(directory / "plan.json") or {"dynamics": {}}
    return tuple(plan.get("advice", ())) if cases_in(plan) == dict(cases) else ()


def dynamics_plan(
    wanted: Inventory, layouts: dict[str, LayoutPlan], begun: Beginnings | None, copied: dict[str, int]
) -> DynamicsPlan:
    """Return the plan of the cases of an inventory, with those to compute in `layouts`."""
    points = int((np.diff(wanted.flat // len(wanted.sweep.seeds), prepend=-1) != 0).sum())
    cases = sum(wanted.counts().values())
    done = cases - sum(layout.todo for layout in layouts.values()) - sum(copied.values())
    return DynamicsPlan(points, cases, done, layouts, copied, {} if begun is None else begun.counts(wanted.ids))


def _demand(sweep: Design, dynamics: str, directory: Path) -> Demand:
    """Return what a dynamics needs of a plan; its identities are kept for the run."""
    store = RunStore(directory, dynamics)
    wanted = inventory(sweep, dynamics, store)
    wanted.remember(store)
    others = other_cases(wanted, store)
    pilots = _pilots(store, others.wanted, cluster_of(sweep).block_size)
    return Demand(store, wanted, others, todo_by_layout(store, others.wanted), pilots)


def _plan_at_costs(sweep: Design, demand: Demand, costs: Mapping[str, Cost]) -> DynamicsPlan:
    """Return the plan of a dynamics from its demand and the costs of its pilots."""
    store, others, todo = demand.store, demand.others, demand.todo
    layouts, parts_left = {}, shares(store, others)
    for name, pilot in sorted(demand.pilots.items()):
        first, cost = pilot.cases[0], costs[pilot.name]
        nbytes, lanes, simulator = case_bytes(first), first.simulator.lanes(first), first.simulator
        by_cost = even(block_size(cost.seconds, nbytes, lanes), todo[name], lanes)
        existing = store.layouts[name].block_size if name in store.layouts else None
        size = existing or cluster_of(sweep).block_size or by_cost
        steps = float(np.mean([simulator.steps(case) for case in pilot.cases]))
        memory = max(map(simulator.memory, pilot.cases))
        numbers = todo[name], size, cost.seconds, nbytes, cost.measured, steps, memory
        layouts[name] = LayoutPlan(*numbers, parts_left.get(name, 1.0))
    return dynamics_plan(others.wanted, layouts, others.begun, others.counts)


def todo_by_layout(store: RunStore, wanted: Inventory) -> dict[str, int]:
    """Return the number of cases to do in each layout that has any."""
    todo = {name: len(wanted.missing_rows(number)) for number, name in enumerate(store.layouts)}
    for name, new in wanted.new.items():
        todo[name] = todo.get(name, 0) + len(new)
    return {name: count for name, count in todo.items() if count}


def _pilots(store: RunStore, wanted: Inventory, size: int | None) -> dict[str, Pilot]:
    """Return a few cases of each layout with cases to do, evenly spaced from its costliest to its cheapest.

    They are not more than those of a block, of so many cases if given: a case takes longer beside fewer others.
    """
    pilots = {}
    for number, (name, layout) in enumerate(store.layouts.items()):
        missing = wanted.missing_rows(number)
        if len(missing):
            some = missing[spread(len(missing), min(PILOT_CASES, layout.block_size))]
            pilots[name] = Pilot(f"{store.dynamics}/{name}", tuple(layout.cases(some)))
    for name, new in wanted.new.items():
        some = new[spread(len(new), min(PILOT_CASES, size or PILOT_CASES))]
        pilots[name] = Pilot(f"{store.dynamics}/{name}", tuple(wanted.cases(some)))
    return pilots
