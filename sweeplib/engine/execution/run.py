"""Run a sweep's dynamics: append new cases, compute missing ones, keep finished ones."""

import hashlib
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sweeplib.engine.code.plugins import load_plugins
from sweeplib.engine.design.design import Design
from sweeplib.engine.execution.blocks import Block
from sweeplib.engine.execution.calibration import SECONDS_A_WORK_UNIT, loading_in
from sweeplib.engine.execution.clients import LastingCluster
from sweeplib.engine.execution.clusters import cluster_of, refuse_large_cases
from sweeplib.engine.execution.earlier_runs import EarlierRunsOf, compact
from sweeplib.engine.execution.estimates import GUESSED, LayoutPlan
from sweeplib.engine.execution.live.case_map import CaseMap
from sweeplib.engine.execution.plan import (
    Plan,
    dynamics_plan,
    plan_of,
    planned_advice,
    planned_layouts,
    todo_by_layout,
    write_plan,
)
from sweeplib.engine.execution.row_copies import take
from sweeplib.engine.execution.work import Workload, by_cluster, by_processes
from sweeplib.engine.storage.records.artefacts import cases_made_from
from sweeplib.engine.storage.records.config_files import write_complete_config
from sweeplib.engine.storage.records.files import read_json, write_json
from sweeplib.engine.storage.records.jobs import tell
from sweeplib.engine.storage.records.locks import driver_lock, remove_block_locks
from sweeplib.engine.storage.records.publish import check_publishing
from sweeplib.engine.storage.records.readme import write_readme
from sweeplib.engine.storage.store.checkpoints import CheckpointFolder
from sweeplib.engine.storage.store.inventory import Inventory, inventory
from sweeplib.engine.storage.store.layout import Layout
from sweeplib.engine.storage.store.other_stores import Beginnings, OtherCases, other_cases
from sweeplib.engine.storage.store.outcomes import write_outcomes
from sweeplib.engine.storage.store.rows import by_block
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.errors import InputError, SweeplibError

if TYPE_CHECKING:
    from distributed import Client

START_SECONDS = 2.0
"""What a local cluster takes to start."""
APPENDED_AT_ONCE = 8
"""Layouts that are created and extended at the same time."""


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
    """Run the cases of each dynamics (by default all), store them in the run store, and return the summaries.

    One cluster runs the blocks of all dynamics, the costliest first: that of the sweep, with as many `workers` if
    given, that of a `client`, which stays open, or one that is `lasting` beyond this run. Failed cases are recorded and
    raise no error. After a crash the same call continues. InputError if another driver runs one of the dynamics. Writes
    a `<dynamics>.done.json` for each, which contains only the sweep's digest and the counts, nothing about this run.
    """
    if client is not None and getattr(client, "asynchronous", True):
        expected = "distributed.Client(..., asynchronous=False)"
        raise InputError(
            "not a client of Dask that waits for its results", key="client", value=client, expected=expected
        )
    load_plugins(sweep.plugins)
    check_publishing(sweep, directory)
    names = list(sweep.runs if dynamics is None else dynamics)
    with ExitStack() as locks:
        for name in sorted(names):
            locks.enter_context(driver_lock(directory, name))
        write_complete_config(sweep, directory)
        write_readme(sweep, directory)
        states = [_state(sweep, name, directory, workers) for name in names]
        if any(map(_State.lacks_a_plan, states)) and not cluster_of(sweep).block_size:
            write_plan(sweep, directory, workers=workers, progress=progress)
            states = [replace(state, plans=planned_layouts(directory, state.store.dynamics)) for state in states]
        _record_numbers(sweep, directory, states)
        states = [_with_taken(sweep, state, workers, show=progress) for state in states]
        if any(state.todo for state in states):
            plan = _plan(sweep, directory, states, workers)
            tell(table=plan.cells(), seconds_left=plan.wall_seconds, total=sum(state.todo for state in states))
            if progress:
                plan.show()
            todo = [state for state in states if state.todo]
            missing = tuple(state.store.dynamics for state in todo), sum(state.todo for state in todo)
            work = Workload(sweep, directory, *missing, lambda: _all_blocks(sweep, states), lambda: _maps(states))
            is_there = client is not None or (lasting is not None and lasting.client is not None)
            if not is_there and _is_short(sweep, plan, workers):
                by_processes(work, plan.cpu_range.most, workers, show=progress)
            else:
                by_cluster(work, client or workers, show=progress, lasting=lasting)
        return {state.store.dynamics: _ended(sweep, state) for state in states}


def _record_numbers(sweep: Design, directory: Path, states: list["_State"]) -> None:
    """Write the numbers of cases of a plan, unless they are those of the plan that was written last."""
    before = (read_json(directory / "plan.done.json") or {}).get("cases", {})
    now = {state.store.dynamics: sum(state.wanted.counts().values()) for state in states}
    whole = {name: total for name in sweep.runs if (total := now.get(name, before.get(name))) is not None}
    if whole != before:
        write_json(directory / "plan.done.json", {"cases": whole, "made_from": cases_made_from(sweep)})


@dataclass(frozen=True)
class _State:
    """The needed cases of one dynamics, the number of those to compute, and the plans of its layouts.

    others : the cases that other folders have, until they are taken.
    begun : where other cases have begun, None if none has.
    """

    store: RunStore
    wanted: Inventory
    todo: int
    plans: dict[str, LayoutPlan]
    others: OtherCases | None = None
    begun: Beginnings | None = None

    def lacks_a_plan(self) -> bool:
        """Return whether the written plan has not all layouts that are to be added to the store."""
        new = (self.wanted if self.others is None else self.others.wanted).new
        return bool(new.keys() - self.store.layouts.keys() - self.plans.keys())

    def expected(self, layout: Layout) -> tuple[float, bool, bool]:
        """Return the expected seconds per case of a layout, whether they were measured, and whether a case may kill.

        A planned cost is not measured only if the pilot ended its process.
        """
        plan = self.plans.get(layout.name)
        if plan is None:
            return SECONDS_A_WORK_UNIT * layout.work, False, False
        return plan.seconds, plan.measured, not plan.measured


def _state(sweep: Design, dynamics: str, directory: Path, workers: int | None) -> _State:
    """Return the state of a dynamics before the run."""
    store = RunStore(directory, dynamics)
    wanted = inventory(sweep, dynamics, store)
    others = other_cases(wanted, store)
    missing = others.wanted.counts()["missing"]
    if missing:
        _refuse(sweep, dynamics, directory, workers)
    return _State(store, wanted, missing, planned_layouts(directory, dynamics), others, others.begun)


def _refuse(sweep: Design, dynamics: str, directory: Path, workers: int | None) -> None:
    """Raise InputError if cases of a dynamics cannot be computed on the sweep's cluster."""
    cluster_of(sweep).in_results(directory).check()
    refuse_large_cases(sweep, dynamics, workers)


def _with_taken(sweep: Design, state: _State, workers: int | None, *, show: bool) -> _State:
    """Return the state after what other folders have was copied into its store."""
    others = state.others
    if others is None or not others.counts:
        return replace(state, others=None)
    name = state.store.dynamics
    tell(doing="taking cases of other sweeps")
    state = _located(_grown(sweep, state))
    lines = [f"{name}: {count:,} cases are taken from {folder}" for folder, count in others.counts.items()]

    def say(news: str) -> None:
        tell(news=news)
        if show:
            sys.stderr.write(f"{news}\n")

    for line in lines:
        say(line)
    take(state.store, state.wanted, others, say)
    wanted = state.wanted.with_status(state.store)
    todo = wanted.counts()["missing"]
    if todo > state.todo:
        _refuse(sweep, name, state.store.directory, workers)
    tell(doing=None)
    return replace(state, wanted=wanted, todo=todo, others=None)


def _plan(sweep: Design, directory: Path, states: list[_State], workers: int | None) -> Plan:
    """Return the plan of the remaining cases; if none was written because the block size is set, costs are guesses."""
    dynamics, written = {}, read_json(directory / "plan.json") or {"dynamics": {}}
    for state in states:
        name, todo = state.store.dynamics, todo_by_layout(state.store, state.wanted)
        layouts = {layout: replace(_layout(sweep, state, layout), todo=count) for layout, count in todo.items()}
        dynamics[name] = dynamics_plan(state.wanted, layouts, state.begun, {}, loading_in(written, name))
    advice = planned_advice(directory, {name: state.cases for name, state in dynamics.items()})
    return plan_of(sweep, dynamics, advice, workers)


def _is_short(sweep: Design, plan: Plan, workers: int | None) -> bool:
    """Return whether processes of this machine are done before a cluster has started, by measured costs."""
    cluster = cluster_of(sweep)
    measured = not any(dynamics_plan.guessed for dynamics_plan in plan.dynamics.values())
    here = cluster.workers_here() is not None and not cluster.performance_report
    return here and measured and plan.cpu_range.most < START_SECONDS * (cluster.expected_workers(workers) or 1)


def _layout(sweep: Design, state: _State, name: str) -> LayoutPlan:
    """Return the plan of a layout; without a written one its costs are guesses."""
    if name in state.plans:
        return state.plans[name]
    layout, new = state.store.layouts.get(name), state.wanted.new.get(name)
    size = layout.block_size if layout else cluster_of(sweep).block_size or 1
    work = layout.work if layout else float(state.wanted.cases(new).works().mean()) if new is not None else 0.0
    return LayoutPlan(0, size, SECONDS_A_WORK_UNIT * work, 0, measured=False, factor=GUESSED)


def _all_blocks(sweep: Design, states: list[_State]) -> list[Block]:
    """Append new cases, replace the states, and return the blocks with missing cases, the costliest first."""
    _append(sweep, states)
    blocks = (block for state in states for block in _blocks(sweep, state))
    return sorted(blocks, key=lambda block: -block.seconds)


def _maps(states: list["_State"]) -> dict[str, CaseMap]:
    """Return the map of the cases of each dynamics, all of which are in the store."""
    from sweeplib.engine.execution.live.case_map import CaseMap

    return {state.store.dynamics: CaseMap(state.wanted, state.store.layouts) for state in states if state.todo}


def _append(sweep: Design, states: list[_State]) -> None:
    """Replace each state by the one with its new cases in the store; columns of earlier ones are not kept."""
    for place, state in enumerate(states):
        grown = _grown(sweep, state)
        states[place] = _located(grown) if state.wanted.new else grown


def _grown(sweep: Design, state: _State) -> _State:
    """Append the new cases of a state; return the state without their columns, positions not yet known.

    New layouts have the configured or the planned block size.
    """
    store, wanted = state.store, state.wanted

    def grow(name: str, new: np.ndarray) -> None:
        if name not in store.layouts:
            size = cluster_of(sweep).block_size or _block_size(state, name, new)
            store.create(name, wanted.cases(new[:1])[0], size, len(new))
        store.layouts[name].append(wanted.ids[new], lambda some: wanted.cases(new[some]))

    with ThreadPoolExecutor(APPENDED_AT_ONCE) as threads:  # most of the time they wait for the disk
        list(threads.map(grow, wanted.new.keys(), wanted.new.values()))
    return replace(state, store=store.refreshed(), wanted=replace(wanted, points=None))


def _located(state: _State) -> _State:
    """Return a state with the positions of its cases in the store, which has all of them."""
    return replace(state, wanted=state.wanted.located(state.store.refreshed()))


def _block_size(state: _State, name: str, new: np.ndarray) -> int:
    """Return the planned block size of a new layout, or that of the source if all of its cases are taken."""
    if name in state.plans:
        return state.plans[name].block_size
    if state.others is None:
        raise SweeplibError(f"{state.store.directory}/plan.json has no block size for {name}")
    place = int(np.flatnonzero(state.wanted.ids == state.wanted.ids[new[0]])[0])
    source = state.others.sources[int(state.others.wanted.layout[place]) - state.others.stored]
    return source.layout.block_size


def _blocks(sweep: Design, state: _State) -> Iterator[Block]:
    """Yield the blocks with missing cases."""
    store = state.store
    for number, layout in enumerate(store.layouts.values()):
        rows, here = state.wanted.missing_rows(number), np.flatnonzero(state.wanted.layout == number)
        earlier = EarlierRunsOf(state.begun, state.wanted.row[here], here) if state.begun and len(rows) else None
        for block, some, positions in by_block(rows, layout.block_size):
            yield Block(
                str(store.directory.resolve()),
                store.dynamics,
                layout.name,
                block,
                compact(positions),
                *state.expected(layout),
                sweep.timeout,
                sweep.plugins,
                tuple(earlier.in_rows(rows[some], block * layout.block_size)) if earlier else (),
                _checkpoints(sweep, store),
            )


def _checkpoints(sweep: Design, store: RunStore) -> CheckpointFolder | None:
    """Return where the cases of a sweep keep their states, None if they have none."""
    if sweep.checkpoint is None:
        return None
    return CheckpointFolder(str(store.directory.resolve()), sweep.checkpoint, sweep.recording.keep_ends)


def _ended(sweep: Design, state: _State) -> DynamicsSummary:
    """Write the table of outcomes and the `done.json` of a dynamics after the run; return its summary."""
    store, wanted = state.store, state.wanted.with_status(state.store) if state.todo else state.wanted
    counts = wanted.counts()
    if counts["missing"]:
        raise SweeplibError(f"{counts['missing']} cases of {store.dynamics} are still missing in {store.directory}")
    remove_block_locks(store.directory, store.dynamics)
    write_outcomes(store, wanted)
    write_json(
        store.directory / f"{store.dynamics}.done.json",
        {
            "sweep": sweep.name,
            "dynamics": store.dynamics,
            "digest": hashlib.blake2b(wanted.ids.tobytes(), digest_size=16).hexdigest(),
            "cases": {status: count for status, count in counts.items() if count},
            "made_from": cases_made_from(sweep),
        },
    )
    return DynamicsSummary(counts, state.todo)
