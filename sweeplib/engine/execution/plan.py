"""The plan of a sweep: the cases it needs, those that exist, and the cost of the rest on this machine.

A layout is all cases of one shape and of similar cost; a pilot is a few of its cases on which that is measured.
"""

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.engine.design.design import Design
from sweeplib.engine.execution.advice import advice, round_lines
from sweeplib.engine.execution.block_size import block_size, case_bytes, even
from sweeplib.engine.execution.calibration import Calibration, basis, cases_in, costs_in, loading_in, plan_on
from sweeplib.engine.execution.clusters import cluster_of, refuse_large_cases
from sweeplib.engine.execution.estimates import OF_WHOLE_RUNS, Cost, DynamicsPlan, LayoutPlan, Range
from sweeplib.engine.execution.horizons import horizon_lines, shares, trials_in, unexited
from sweeplib.engine.execution.pilots import Pilot, pilots_of
from sweeplib.engine.execution.progress import Steps
from sweeplib.engine.process.terminal import bytes_text, counted, duration
from sweeplib.engine.simulator import home_of
from sweeplib.engine.storage.records.artefacts import cases_made_from
from sweeplib.engine.storage.records.config_files import write_complete_config
from sweeplib.engine.storage.records.files import damaged, read_json, write_json
from sweeplib.engine.storage.records.stage_records import recorded_stage, stage_record
from sweeplib.engine.storage.store.inventory import Inventory, inventory
from sweeplib.engine.storage.store.other_stores import OtherCases, other_cases
from sweeplib.engine.storage.store.run_store import RunStore

if TYPE_CHECKING:
    from rich.table import Table

LEAST_NAMED = 0.5
"""The seconds from which on the compilation and the loading of machine code are named."""
SHAPE_SECONDS, MANY_SHAPES = 0.03, 100
"""What a shape takes in store and dataset, about, in addition to its blocks; from how many shapes on this is said."""


@dataclass(frozen=True)
class Plan:
    """The plan of a sweep by dynamics, for `workers` workers (None if their number is not known in advance).

    It is shown as a table, in notebooks too.

    resources : what the rest takes of a shared cluster at most, in words; None elsewhere.
    compilation : CPU seconds that making the plan took for machine code that was not there; in no other time.
    """

    name: str
    workers: int | None
    dynamics: dict[str, DynamicsPlan] = field(default_factory=dict)
    advice: tuple[str, ...] = ()
    resources: str | None = None
    compilation: float = 0.0

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
        totals |= {"compilation": self.compilation}
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
        """Return the plan that a record describes; keys that older records lack have defaults."""
        dynamics = {
            name: DynamicsPlan(
                plan["points"],
                plan["cases"],
                plan["done"],
                {layout: LayoutPlan(**values) for layout, values in plan["layouts"].items()},
                plan.get("copies", {}),
                plan.get("begun", {}),
                plan.get("loading", 0.0),
            )
            for name, plan in record["dynamics"].items()
        }
        return cls(record["name"], record["workers"], dynamics, tuple(record["advice"]), record["resources"])

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


@dataclass(frozen=True)
class Demand:
    """What the plan of one dynamics is made of.

    wanted : the cases that the sweep needs, with their status in its `store`.
    others : the same cases, with the status of those, too, that other folders have.
    pilots : of each layout with cases to compute, by its name.
    """

    store: RunStore
    wanted: Inventory
    others: OtherCases
    pilots: dict[str, Pilot]

    @property
    def todo(self) -> dict[str, int]:
        """The number of cases to compute of each layout."""
        return todo_by_layout(self.others.wanted)


def write_plan(sweep: Design, directory: Path, *, workers: int | None = None, progress: bool = True) -> Plan:
    """Write a sweep's plan to `plan.json` under `directory`; return it.

    The run uses its block sizes and costs. What is recorded is the same for the same cases, however many of them are
    done and however fast the machine is. Costs that the plan before measured are used again if only the seeds have
    changed. The plan of the same cases stays once all of them are done: the next run with more seeds knows its costs.

    workers : their number, None for what the config says. progress : whether a line says which step begins.
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
        loading = {name: calibration.loading.get(name) or loading_in(before, name) for name in demands}
        plans = {name: _plan_at_costs(sweep, demand, costs, loading[name]) for name, demand in demands.items()}
        advised = advice(plans, {name: demand.pilots for name, demand in demands.items()}, calibration)
        # lines below the table: of stores that could not be read, of advice, of horizons
        texts = tuple(line for demand in demands.values() for line in demand.others.unread)
        texts += tuple(item.text for item in advised)
        # the trials of the plan before hold if no layout is new: then only seeds have changed
        trials = {} if any(pilot.name not in earlier_costs for pilot in pilots) else trials_in(before)
        unit = sweep.time_attributes
        for name, demand in demands.items():
            missing = [case for pilot in demand.pilots.values() for case in pilot.cases]
            stored = unexited(demand.store, demand.wanted)
            lines, trials[name] = horizon_lines(name, missing, stored, calibration, trials.get(name), unit)
            texts += tuple(lines)
    plan = plan_of(sweep, plans, texts + round_lines(sweep), workers)
    plan = replace(plan, compilation=calibration.compilation)
    if not (directory / "config.yaml").exists():
        write_complete_config(sweep, directory)  # that of a run or of a dataset stays
    cases = {name: dynamics_plan.cases for name, dynamics_plan in plans.items()}
    if plan.todo or cases_in(before) != cases:
        horizons = {name: trial and asdict(trial) for name, trial in trials.items()}
        write_json(directory / "plan.json", plan.record() | {"measured_on": measured_on, "horizons": horizons})
    record_plan(sweep, directory, cases)
    return plan


def record_plan(sweep: Design, directory: Path, cases: Mapping[str, int]) -> None:
    """Write the record of the stage "plan": the numbers of cases by dynamics, and what they were made from."""
    with recorded_stage(directory, "plan") as record:
        record.write_result(cases_made_from(sweep), counts=cases)


def plan_of(
    sweep: Design, dynamics: dict[str, DynamicsPlan], advice: tuple[str, ...], workers: int | None = None
) -> Plan:
    """Return the plan of a sweep, for its cluster with its own or another number of workers; `advice` in lines."""
    cluster = cluster_of(sweep)
    plan = Plan(sweep.name, cluster.expected_workers(workers), dynamics, advice)
    most = plan.cpu_range.most
    return replace(plan, resources=cluster.resources(most)) if most else plan


def plan_when_done(directory: Path) -> dict[str, Any] | None:
    """Return the cells of the table of a written plan as if all its cases were done, for `sweep` with nothing to do.

    None if a new plan has to be made: the written one has advice, or is of other numbers of cases than its record.
    """
    plan = Plan.of(read_json(directory / "plan.json") or {})
    done = {name: DynamicsPlan(entry.points, entry.cases, entry.cases, {}) for name, entry in plan.dynamics.items()}
    is_old = {name: entry.cases for name, entry in plan.dynamics.items()} != stage_record(directory, "plan").counts
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
    others: OtherCases, layouts: dict[str, LayoutPlan], copied: dict[str, int], loading: float
) -> DynamicsPlan:
    """Return the plan of a dynamics.

    others : its inventory. layouts : of the cases to compute. copied : the number of cases to take, by folder.
    loading : the seconds in which a worker loads its machine code.
    """
    wanted = others.wanted
    # a point is the cases that differ in their seed alone, which stand side by side in the grid
    points = int((np.diff(wanted.flat // len(wanted.sweep.seeds), prepend=-1) != 0).sum())
    cases = sum(wanted.counts().values())
    done = cases - sum(layout.todo for layout in layouts.values()) - sum(copied.values())
    return DynamicsPlan(points, cases, done, layouts, copied, others.beginnings, loading)


def _demand(sweep: Design, dynamics: str, directory: Path) -> Demand:
    """Return what the plan of a dynamics is made of; the identities of its cases are written for the run."""
    store = RunStore(directory, dynamics)
    wanted = inventory(sweep, dynamics, store)
    wanted.remember(store)
    others = other_cases(wanted, store)
    return Demand(store, wanted, others, pilots_of(others.wanted, cluster_of(sweep).block_size))


def _plan_at_costs(sweep: Design, demand: Demand, costs: Mapping[str, Cost], loading: float) -> DynamicsPlan:
    """Return the plan of a dynamics from its demand.

    costs : of a case, by the name of the pilot. loading : the seconds in which a worker loads its machine code.
    """
    others, todo = demand.others, demand.todo
    layouts, parts_left = {}, shares(others)
    for name, pilot in sorted(demand.pilots.items()):
        first, cost = pilot.cases[0], costs[pilot.name]
        nbytes, lanes, simulator = case_bytes(first), first.simulator.lanes(first), first.simulator
        by_cost = even(block_size(cost.most, nbytes, lanes), todo[name], lanes)
        size = cluster_of(sweep).block_size or by_cost
        steps = float(np.mean([simulator.steps(case) for case in pilot.cases]))
        memory = max(map(simulator.memory, pilot.cases))
        # the first fields of a `LayoutPlan`, in their order
        numbers = todo[name], size, cost.seconds, nbytes, cost.measured, steps, memory
        layouts[name] = LayoutPlan(*numbers, parts_left.get(name, 1.0), cost.factor)
    return dynamics_plan(others, layouts, others.counts, loading)


def todo_by_layout(wanted: Inventory) -> dict[str, int]:
    """Return the number of missing cases of each layout that has any."""
    return {name: len(places) for name, places in wanted.missing.items()}
