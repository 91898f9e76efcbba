"""The plan of a sweep: the cases it needs, those that exist, and the cost of the rest on this machine.

A layout is all cases of one shape and of similar cost; a pilot is a few of its cases on which that is measured.
"""

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from sweeplib.engine.cases import Case
from sweeplib.engine.design.design import Design
from sweeplib.engine.execution.advice import advice, round_lines
from sweeplib.engine.execution.calibration import SECONDS_A_WORK_UNIT, Calibration, Pilot, pilots_of
from sweeplib.engine.execution.clusters import cluster_of, refuse_large_cases
from sweeplib.engine.execution.estimates import GUESSED, WRITTEN, Cost, DynamicsPlan, LayoutPlan, Plan, case_bytes
from sweeplib.engine.execution.horizons import HorizonTrial, horizon_lines, shares, unexited
from sweeplib.engine.execution.progress import Steps
from sweeplib.engine.execution.queue import block_size, even
from sweeplib.engine.process.terminal import counted
from sweeplib.engine.simulator import home_of
from sweeplib.engine.storage.dataset.folded_names import refuse_folded_names
from sweeplib.engine.storage.records.artefacts import cases_made_from, is_of_config, settings_digest
from sweeplib.engine.storage.records.config_files import write_complete_config
from sweeplib.engine.storage.records.files import DamageError, digest, write_json
from sweeplib.engine.storage.records.locks import driver_locks
from sweeplib.engine.storage.records.provenance import cpu_model
from sweeplib.engine.storage.records.publish import check_publishing
from sweeplib.engine.storage.records.stage_records import recorded_stage, stage_record
from sweeplib.engine.storage.store.inventory import Inventory, inventory, order_of_work
from sweeplib.engine.storage.store.other_stores import Demand, demand_of
from sweeplib.engine.storage.store.run_store import RunStore


def write_plan(
    sweep: Design, directory: Path, *, workers: int | None = None, progress: bool = True, to_run: bool = True
) -> Plan:
    """Write a sweep's plan to `plan.json` under `directory`; return it.

    The run uses its block sizes and costs. What is recorded is the same for the same cases, however many of them are
    done and however fast the machine is. Costs that the plan before measured are used again if only the seeds have
    changed. The plan of the same cases stays once all of them are done: the next run with more seeds knows its costs.

    workers : their number, None for what the config says. progress : whether a line says which step begins.
    to_run : if false, the plan is one to look at: where the dataset is of another config, only its costs are kept.
    """
    cluster, steps = cluster_of(sweep), Steps(sweep.name if progress else None)
    before = _plan_before(sweep, directory)
    memory, module = cluster.memory_here(workers), home_of(sweep.simulator)
    with Calibration(sweep.plugins, steps, memory, sweep.timeout, module) as calibration:
        with steps.step(f"planning {counted(sweep.size)}"):
            demands = dict[str, Demand]()
            for name in sweep.runs:
                wanted = inventory(sweep, name, RunStore(directory, name))
                wanted.remember()  # identities are written for the run
                demands[name] = demand_of(wanted)
                if demands[name].todo:
                    refuse_large_cases(sweep, name, workers)
            pilots = {name: pilots_of(demand.wanted, cluster.block_size) for name, demand in demands.items()}
        costs = before.costs
        new = [pilot for by_name in pilots.values() for pilot in by_name.values() if pilot.name not in costs]
        costs |= calibration.costs(new)
        plans = {
            name: _at_costs(demand, pilots[name], costs, calibration.loading.get(name) or before.loading_of(name))
            for name, demand in demands.items()
        }
        # lines below the table: of stores that could not be read, of advice, of horizons
        lines = [line for demand in demands.values() for line in demand.unread]
        lines += advice(plans, pilots, calibration)
        # the trials of the plan before hold if no layout is new: then only seeds have changed
        trials = {} if new else {name: record and HorizonTrial(**record) for name, record in before.horizons.items()}
        for name, demand in demands.items():
            cases = [case for pilot in pilots[name].values() for case in pilot.cases]
            stored, unit = unexited(demand.wanted), sweep.time_attributes
            more, trials[name] = horizon_lines(name, cases, stored, calibration, trials.get(name), unit)
            lines += more
    plan = replace(
        Plan.on(cluster, workers, sweep.name, plans, (*lines, *round_lines(sweep))),
        compilation=calibration.compilation,
        measured_on=before.measured_on,
        horizons={name: trial and asdict(trial) for name, trial in trials.items()},
    )
    if not (directory / "config.yaml").exists():
        write_complete_config(sweep, directory)  # that of a run or of a dataset stays
    if plan.todo or before.cases != plan.cases:
        write_json(directory / WRITTEN, plan.record())
    if to_run or is_of_config(sweep, directory):
        with recorded_stage(directory, "plan") as record:
            record.write_result(cases_made_from(sweep), counts=plan.cases)
    return plan


def write_missing_plan(
    sweep: Design,
    directory: Path,
    dynamics: Iterable[str] | None = None,
    *,
    workers: int | None = None,
    progress: bool = True,
) -> None:
    """Write the plan of a sweep that is to run, unless the last one is of the same cases.

    None is made where the config says the size of blocks: nothing has to be measured then. InputError, before any work,
    if the sweep's cluster cannot be started from here, or the dataset not be published, or another driver runs one of
    the `dynamics`; DamageError if the last plan is damaged. The arguments are those of `run_sweep`.
    """
    is_there = Plan.read(directory) is not None and stage_record(directory, "plan").is_of(cases_made_from(sweep))
    if not is_there and not cluster_of(sweep).block_size:
        check_places(sweep, directory)
        with driver_locks(directory, sweep.runs if dynamics is None else dynamics):
            write_plan(sweep, directory, workers=workers, progress=progress)


def check_places(sweep: Design, directory: Path) -> None:
    """Raise InputError if the sweep's cluster cannot be started from here, or its dataset cannot be written there."""
    cluster_of(sweep).in_results(directory).check()
    check_publishing(sweep, directory)
    refuse_folded_names(sweep, directory)


def plan_of_rest(sweep: Design, directory: Path, demands: Mapping[str, Demand], workers: int | None) -> Plan:
    """Return the plan of the cases that are to be computed now, at the costs of the plan that was written.

    Cases of a layout that it lacks are as dear as those that are stored were for their work; without these, their cost
    is a guess.
    """
    written, cluster = Plan.read(directory) or Plan(sweep.name, None), cluster_of(sweep)
    plans = dict[str, DynamicsPlan]()
    for name, demand in demands.items():
        planned = written.dynamics[name].layouts if name in written.dynamics else {}
        layouts = {
            layout: replace(planned[layout], todo=len(places))
            if layout in planned
            else _unmeasured(demand.wanted, places, cluster.block_size)
            for layout, places in demand.wanted.missing.items()
        }
        plans[name] = DynamicsPlan.of(demand, layouts, {}, written.loading_of(name))
    is_of_all = written.cases == {name: plan.cases for name, plan in plans.items()}
    return Plan.on(cluster, workers, sweep.name, plans, written.advice if is_of_all else ())


def plan_when_done(directory: Path) -> dict[str, Any] | None:
    """Return the cells of the table of a written plan as if all its cases were done, for `sweep` with nothing to do.

    None if a new plan has to be made: the written one has advice, or is of other numbers of cases than its record.
    """
    plan = Plan.read(directory)
    if plan is None or plan.advice or plan.cases != stage_record(directory, "plan").counts:
        return None
    done = {name: DynamicsPlan(entry.points, entry.cases, entry.cases, {}) for name, entry in plan.dynamics.items()}
    return replace(plan, dynamics=done, resources=None).cells()


def plan_as_json(plan: Plan, sweep: Design, directory: Path) -> str:
    """Return a plan as JSON, with the cases of the sweep as `rows`: columns for each dynamics."""
    rows = {name: inventory(sweep, name, RunStore(directory, name)).rows() for name in sweep.runs}
    return json.dumps(plan.record() | {"rows": rows}, indent=1)


def _plan_before(sweep: Design, directory: Path) -> Plan:
    """Return the written plan, one that says nothing if it was measured on another basis or is damaged.

    The basis is what the cost of a case depends on: the config without its seeds, the code, the machine.
    """
    numerics = [sweep.numerics(name) for name in sweep.runs]
    about = [settings_digest(sweep.source, "seeds"), *numerics, platform.node(), cpu_model()]
    basis = digest(json.dumps(about).encode())
    with suppress(DamageError):  # it is written again
        if (plan := Plan.read(directory)) is not None and plan.measured_on == basis:
            return plan
    return Plan(sweep.name, None, measured_on=basis)


def _at_costs(demand: Demand, pilots: Mapping[str, Pilot], costs: Mapping[str, Cost], loading: float) -> DynamicsPlan:
    """Return the plan of a dynamics.

    pilots : of its layouts, by name. costs : of a case, by the name of the pilot.
    loading : the seconds in which a worker loads its machine code.
    """
    parts_left, size = shares(demand), cluster_of(demand.wanted.sweep).block_size
    layouts = {
        name: _layout_plan(
            pilot.cases, len(demand.wanted.missing[name]), costs[pilot.name], size, parts_left.get(name, 1.0)
        )
        for name, pilot in sorted(pilots.items())
    }
    return DynamicsPlan.of(demand, layouts, demand.counts, loading)


def _layout_plan(cases: Sequence[Case], todo: int, cost: Cost, size: int | None, share: float = 1.0) -> LayoutPlan:
    """Return the plan of a layout with a number of cases to do, some of which are `cases`, each at a `cost`.

    size : of a block, if the config sets it. share : the part of the seconds that is left.
    """
    simulator, nbytes, lanes = cases[0].simulator, case_bytes(cases[0]), cases[0].simulator.lanes(cases[0])
    return LayoutPlan(
        todo,
        size or even(block_size(cost.most, nbytes, lanes), todo, lanes),
        cost.seconds,
        nbytes,
        cost.measured,
        float(np.mean([simulator.steps(case) for case in cases])),
        max(map(simulator.memory, cases)),
        share,
        cost.factor,
        suspect=not cost.measured,
    )


def _unmeasured(wanted: Inventory, places: np.ndarray, size: int | None) -> LayoutPlan:
    """Return the plan of a layout of which no case was measured, with cases to compute at `places` (n,).

    size : of a block, if the config sets it.
    """
    case, rate = wanted.cases(places[:1])[0], wanted.store.seconds_a_unit()
    cost = Cost(order_of_work(case) * (rate or SECONDS_A_WORK_UNIT), rate is not None, GUESSED)
    return replace(_layout_plan([case], len(places), cost, size), suspect=False)
