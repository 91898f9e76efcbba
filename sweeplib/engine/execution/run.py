"""Run a sweep's dynamics: compute missing cases, keep finished ones.

A layout is all cases of a dynamics of one shape and similar cost; a block is some of its missing cases, a task.
`workers` is their number, None for what the config says.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sweeplib.engine.code.plugins import load_plugins
from sweeplib.engine.design.design import Design
from sweeplib.engine.execution.block_size import case_bytes
from sweeplib.engine.execution.blocks import Block
from sweeplib.engine.execution.calibration import SECONDS_A_WORK_UNIT, loading_in
from sweeplib.engine.execution.clients import LastingCluster
from sweeplib.engine.execution.clusters import cluster_of, refuse_large_cases
from sweeplib.engine.execution.estimates import GUESSED, LayoutPlan
from sweeplib.engine.execution.live.case_map import CaseMap
from sweeplib.engine.execution.plan import (
    Plan,
    dynamics_plan,
    plan_of,
    planned_advice,
    planned_layouts,
    record_plan,
    write_plan,
)
from sweeplib.engine.execution.queue import LayoutCases, Queue
from sweeplib.engine.execution.work import Stored, Workload, by_cluster, by_processes
from sweeplib.engine.storage.dataset.folded_names import refuse_folded_names
from sweeplib.engine.storage.records.artefacts import cases_made_from
from sweeplib.engine.storage.records.config_files import write_complete_config
from sweeplib.engine.storage.records.files import digest, read_json
from sweeplib.engine.storage.records.locks import driver_lock, remove_block_locks
from sweeplib.engine.storage.records.publish import check_publishing
from sweeplib.engine.storage.records.readme import write_readme
from sweeplib.engine.storage.records.stage_records import recorded_stage, stage_record, tell
from sweeplib.engine.storage.store.checkpoints import CheckpointFolder
from sweeplib.engine.storage.store.earlier_store import convert
from sweeplib.engine.storage.store.inventory import Inventory, inventory, order_of_work
from sweeplib.engine.storage.store.other_stores import OtherCases, other_cases
from sweeplib.engine.storage.store.outcomes import write_outcomes
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.engine.storage.store.segment import RUNS
from sweeplib.engine.storage.store.taking import take
from sweeplib.errors import InputError, SweeplibError

if TYPE_CHECKING:
    from distributed import Client

START_SECONDS = 2.0
"""Seconds that a local cluster takes to start."""


@dataclass(frozen=True)
class DynamicsSummary:
    """The number of cases of a dynamics with each status, and the number computed by this run."""

    cases: dict[str, int]
    computed: int


def run_sweep(
    sweep: Design,
    directory: Path,
    dynamics: Iterable[str] | None = None,
    *,
    workers: int | None = None,
    progress: bool = True,
    client: "Client | None" = None,
    lasting: LastingCluster | None = None,
) -> dict[str, DynamicsSummary]:
    """Run the cases of each dynamics (by default all), store them in the run store, and return a summary of each.

    Failed cases are recorded and raise no error. After a crash the same call continues. Writes the record of each
    dynamics: the digest of its cases' identities, and their counts. BusyError if another driver runs one of them.

    directory : the folder of the sweep's results.
    workers, client, lasting : which cluster runs the blocks of all dynamics, the costliest first: the sweep's own, with
    its number of workers or another, that of a client, which stays open, or one that lasts beyond this run.
    progress : whether the plan and the progress are shown.
    """
    if client is not None and getattr(client, "asynchronous", True):
        expected = "distributed.Client(..., asynchronous=False)"
        raise InputError(
            "not a client of Dask that waits for its results", key="client", value=client, expected=expected
        )
    load_plugins(sweep.plugins)
    check_publishing(sweep, directory)
    refuse_folded_names(sweep, directory)
    names = list(sweep.runs if dynamics is None else dynamics)
    with ExitStack() as locks:
        # in one order, so that two runs cannot wait for each other
        for name in sorted(names):
            locks.enter_context(driver_lock(directory, name))
        write_complete_config(sweep, directory)
        write_readme(sweep, directory)
        states = [_state(sweep, name, directory, workers) for name in names]
        (directory / RUNS).mkdir(exist_ok=True)  # workers are asked whether they see it
        if any(map(_State.lacks_a_plan, states)) and not cluster_of(sweep).block_size:
            write_plan(sweep, directory, workers=workers, progress=progress)
            states = [replace(state, plans=planned_layouts(directory, state.store.dynamics)) for state in states]
        _record_numbers(sweep, directory, states)
        # what other sweeps have stored is taken; what is left is computed, here if that is short
        states = [_with_taken(sweep, state, workers, show=progress) for state in states]
        stored = Stored()
        if any(state.todo for state in states):
            plan = _plan(sweep, directory, states, workers)
            tell(table=plan.cells(), seconds_left=plan.wall_seconds, total=sum(state.todo for state in states))
            if progress:
                plan.show()
            todo = [state for state in states if state.todo]
            missing = tuple(state.store.dynamics for state in todo), sum(state.todo for state in todo)
            work = Workload(sweep, directory, *missing, lambda: _queue(sweep, states), lambda: _maps(states))
            is_there = client is not None or (lasting is not None and lasting.client is not None)
            if not is_there and _is_short(sweep, plan, workers):
                stored = by_processes(work, plan.cpu_range.most, workers, show=progress)
            else:
                stored = by_cluster(work, client or workers, show=progress, lasting=lasting)
        return {state.store.dynamics: _ended(sweep, state, stored) for state in states}


def _record_numbers(sweep: Design, directory: Path, states: list["_State"]) -> None:
    """Write the stage record of the plan, the number of cases of each dynamics, unless the last one says the same.

    Dynamics that this run does not compute keep the number that they had.
    """
    plan = stage_record(directory, "plan")
    now = {state.store.dynamics: sum(state.wanted.counts().values()) for state in states}
    counts = {name: total for name in sweep.runs if (total := now.get(name, plan.counts.get(name))) is not None}
    if plan.counts != counts or not plan.is_of(cases_made_from(sweep)):
        record_plan(sweep, directory, counts)


@dataclass(frozen=True)
class _State:
    """The needed cases of one dynamics, and the plans of their layouts.

    wanted : the cases, with their status in the sweep's own store.
    plans : those written in `plan.json`, by layout.
    others : the cases, with the status of those, too, that other folders have, and where others have begun.
    """

    store: RunStore
    wanted: Inventory
    plans: dict[str, LayoutPlan]
    others: OtherCases

    @cached_property
    def todo(self) -> int:
        """The number of cases to compute."""
        return self.others.wanted.counts()["missing"]

    def lacks_a_plan(self) -> bool:
        """Return whether the written plan lacks a layout with cases to compute."""
        return bool(self.others.wanted.missing.keys() - self.plans.keys())


def _state(sweep: Design, dynamics: str, directory: Path, workers: int | None) -> _State:
    """Return the state of a dynamics before the run; a store of earlier versions is converted.

    InputError if there are cases to compute that cannot be on the sweep's cluster.
    """
    convert(directory, dynamics)
    store = RunStore(directory, dynamics)
    wanted = inventory(sweep, dynamics, store)
    others = other_cases(wanted, store)
    state = _State(store, wanted, planned_layouts(directory, dynamics), others)
    if state.todo:
        _refuse(sweep, dynamics, directory, workers)
    return state


def _refuse(sweep: Design, dynamics: str, directory: Path, workers: int | None) -> None:
    """Raise InputError if cases of a dynamics cannot be computed on the sweep's cluster."""
    cluster_of(sweep).in_results(directory).check()
    refuse_large_cases(sweep, dynamics, workers)


def _with_taken(sweep: Design, state: _State, workers: int | None, *, show: bool) -> _State:
    """Take the cases that other folders have into the sweep's store, saying so; return the state after that."""
    others = state.others
    if not others.counts:
        return state
    store, name = state.store, state.store.dynamics
    tell(doing="taking cases of other sweeps")
    lines = [f"{name}: {count:,} cases are taken from {folder}" for folder, count in others.counts.items()]

    def say(news: str) -> None:
        """Tell a line of news: to the page of the run and, if progress is shown, to standard error."""
        tell(news=news)
        if show:
            sys.stderr.write(f"{news}\n")

    for line in lines:
        say(line)
    take(store.directory, others, say)
    store = store.refreshed()
    wanted = state.wanted.located(store)
    after = replace(state, store=store, wanted=wanted, others=replace(others, wanted=wanted, elsewhere=None))
    if after.todo > state.todo:  # some could not be taken
        _refuse(sweep, name, store.directory, workers)
    tell(doing=None)
    return after


def _plan(sweep: Design, directory: Path, states: list[_State], workers: int | None) -> Plan:
    """Return the plan of the remaining cases, with the costs of the plan that was written.

    They are guesses without one: the config may set the size of blocks, and then nothing had to be measured.
    """
    dynamics, written = {}, read_json(directory / "plan.json") or {"dynamics": {}}
    for state in states:
        name, missing = state.store.dynamics, state.wanted.missing
        layouts = {
            layout: replace(_layout(sweep, state, layout), todo=len(places)) for layout, places in missing.items()
        }
        dynamics[name] = dynamics_plan(state.others, layouts, {}, loading_in(written, name))
    advice = planned_advice(directory, {name: state.cases for name, state in dynamics.items()})
    return plan_of(sweep, dynamics, advice, workers)


def _is_short(sweep: Design, plan: Plan, workers: int | None) -> bool:
    """Return whether processes of this machine would be done, by measured costs, before a local cluster has started."""
    cluster = cluster_of(sweep)
    measured = not any(dynamics_plan.guessed for dynamics_plan in plan.dynamics.values())
    is_local = cluster.workers_here() is not None and not cluster.performance_report
    # what the processes do in the seconds in which the cluster would start
    return is_local and measured and plan.cpu_range.most < START_SECONDS * (cluster.expected_workers(workers) or 1)


def _layout(sweep: Design, state: _State, name: str) -> LayoutPlan:
    """Return the plan of a layout with missing cases, by its name; without a written one its costs are guesses."""
    if name in state.plans:
        return state.plans[name]
    work = order_of_work(state.wanted.cases(state.wanted.missing[name][:1])[0])
    size = cluster_of(sweep).block_size or 1
    # it says nothing of how many cases are left, nor of their bytes
    return LayoutPlan(0, size, SECONDS_A_WORK_UNIT * work, 0, measured=False, factor=GUESSED)


def _queue(sweep: Design, states: list[_State]) -> Queue:
    """Return the missing cases of all dynamics."""
    return Queue(layout for state in states for layout in _layouts(sweep, state))


def _maps(states: list[_State]) -> dict[str, CaseMap]:
    """Return the map of the cases of each dynamics."""
    return {state.store.dynamics: CaseMap(state.wanted) for state in states if state.todo}


def _layouts(sweep: Design, state: _State) -> Iterator[LayoutCases]:
    """Yield the missing cases of a dynamics by their layouts."""
    wanted, directory = state.wanted, str(state.store.directory.resolve())
    for name, missing in wanted.missing.items():
        plan, case = _layout(sweep, state, name), wanted.cases(missing[:1])[0]
        whole = Block(
            directory,
            wanted.dynamics,
            name,
            len(missing),
            wanted=wanted,
            places=missing,
            work=order_of_work(case),
            seconds_a_case=plan.seconds,
            measured=plan.measured,
            # every planned cost is measured, unless the pilot ended its process
            suspect=name in state.plans and not plan.measured,
            timeout=sweep.timeout,
            plugins=sweep.plugins,
            checkpoints=_checkpoints(sweep, state.store),
        )
        lanes, size = case.simulator.lanes(case), cluster_of(sweep).block_size
        yield LayoutCases(whole, wanted.ids[missing], lanes, case_bytes(case), plan.factor, size, state.others.begun)


def _checkpoints(sweep: Design, store: RunStore) -> CheckpointFolder | None:
    """Return where the cases of a sweep keep their states, None if they have none."""
    if sweep.checkpoint is None:
        return None
    return CheckpointFolder(str(store.directory.resolve()), sweep.checkpoint, sweep.recording.keep_ends)


def _ended(sweep: Design, state: _State, stored: Stored) -> DynamicsSummary:
    """Write the table of outcomes and the record of a dynamics after the run; return its summary.

    stored : the segments that workers say they have written, for which a slow file system is waited.
    SweeplibError if cases are still missing.
    """
    store, wanted = state.store, state.wanted
    if state.todo:
        store.wait_for(name for dynamics, name in stored if name and dynamics == store.dynamics)
        store = store.refreshed()
        wanted = wanted.located(store)
    counts = wanted.counts()
    if counts["missing"]:
        problem = f"{counts['missing']} cases of {store.dynamics} are still missing in {store.directory}"
        raise SweeplibError(f"{problem}; run again")
    remove_block_locks(store.directory, store.dynamics)
    write_outcomes(store, wanted)
    if store.merge():
        store = store.refreshed()
        wanted = wanted.located(store)
    wanted.remember(store)
    with recorded_stage(store.directory, f"simulate.{store.dynamics}") as record:
        occurring = {status: count for status, count in counts.items() if count}
        record.write_result(cases_made_from(sweep), digest=digest(wanted.ids.tobytes()), counts=occurring)
    return DynamicsSummary(counts, state.todo)
