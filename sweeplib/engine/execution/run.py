"""Run a sweep's dynamics: compute missing cases, keep finished ones.

`workers` is their number, None for what the config says.
"""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.engine.design.design import Design
from sweeplib.engine.execution.clients import LastingCluster
from sweeplib.engine.execution.clusters import refuse_unfit
from sweeplib.engine.execution.plan import plan_of_rest
from sweeplib.engine.execution.work import Stored, Workload, computed_cases
from sweeplib.engine.storage.dataset.folded_names import refuse_folded_names
from sweeplib.engine.storage.records.artefacts import cases_made_from, questions_made_from
from sweeplib.engine.storage.records.config_files import write_description
from sweeplib.engine.storage.records.files import digest
from sweeplib.engine.storage.records.locks import driver_locks, remove_block_locks
from sweeplib.engine.storage.records.publish import check_publishing
from sweeplib.engine.storage.records.stage_records import recorded_stage, stage_record, tell
from sweeplib.engine.storage.store.earlier_store import convert
from sweeplib.engine.storage.store.inventory import inventory
from sweeplib.engine.storage.store.other_stores import Demand, demand_of, take
from sweeplib.engine.storage.store.outcomes import write_outcomes
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.engine.storage.store.segment import RUNS
from sweeplib.errors import SweeplibError

if TYPE_CHECKING:
    from distributed import Client


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

    What cases cost is taken from the plan that was written (`write_missing_plan`), and learned as they are done.

    directory : the folder of the sweep's results.
    workers, client, lasting : which cluster runs the blocks of all dynamics, the costliest first: the sweep's own, with
    its number of workers or another, that of a client, which stays open, or one that lasts beyond this run.
    progress : whether the plan and the progress are shown.
    """
    check_publishing(sweep, directory)
    refuse_folded_names(sweep, directory)
    names = list(sweep.runs if dynamics is None else dynamics)
    with driver_locks(directory, names):
        write_description(sweep, directory)
        demands = {name: _demand(sweep, name, directory, workers) for name in names}
        (directory / RUNS).mkdir(exist_ok=True)  # workers are asked whether they see it
        made_from = cases_made_from(sweep)
        _record_numbers(sweep, directory, demands, made_from)
        # what other sweeps have stored is taken; what is left is computed
        demands = {name: _with_taken(demand, workers, show=progress) for name, demand in demands.items()}
        unfinished, stored = {name: demand for name, demand in demands.items() if demand.todo}, Stored()
        if unfinished:
            plan = plan_of_rest(sweep, directory, demands, workers)
            tell(table=plan.cells(), seconds_left=plan.wall_seconds, total=plan.todo)
            if progress:
                plan.show()
            work = Workload(sweep, directory, unfinished, plan)
            stored = computed_cases(work, client or workers, lasting, show=progress)
        made_from |= questions_made_from(sweep)
        return {name: _ended(demand, stored.get(name, set()), made_from) for name, demand in demands.items()}


def _demand(sweep: Design, dynamics: str, directory: Path, workers: int | None) -> Demand:
    """Return the cases of a dynamics, and where they are before the run; a store of earlier versions is converted.

    InputError if there are cases to compute that cannot be on the sweep's cluster.
    """
    convert(directory, dynamics)
    demand = demand_of(inventory(sweep, dynamics, RunStore(directory, dynamics)))
    if demand.todo:
        refuse_unfit(sweep, dynamics, directory, workers)
    return demand


def _record_numbers(
    sweep: Design, directory: Path, demands: Mapping[str, Demand], made_from: Mapping[str, Any]
) -> None:
    """Write the stage record of the plan, the number of cases of each dynamics, unless the last one says the same.

    Dynamics that this run does not compute keep the number that they had. made_from : what the cases are made from.
    """
    plan = stage_record(directory, "plan")
    now = {name: sum(demand.wanted.counts().values()) for name, demand in demands.items()}
    counts = {name: total for name in sweep.runs if (total := now.get(name, plan.counts.get(name))) is not None}
    if plan.counts != counts or not plan.is_of(made_from):
        with recorded_stage(directory, "plan") as record:
            record.write_result(made_from, counts=counts)


def _with_taken(demand: Demand, workers: int | None, *, show: bool) -> Demand:
    """Take the cases that other folders have into the sweep's store, saying so; return what is needed after that."""
    if not demand.counts:
        return demand

    def say(news: str) -> None:
        """Tell a line of news: to the page of the run and, if progress is shown, to standard error."""
        tell(news=news)
        if show:
            sys.stderr.write(f"{news}\n")

    tell(doing="taking cases of other sweeps")
    for folder, count in demand.counts.items():
        say(f"{demand.wanted.dynamics}: {count:,} cases are taken from {folder}")
    after = take(demand, say)
    if after.todo > demand.todo:  # some could not be taken
        refuse_unfit(after.wanted.sweep, after.wanted.dynamics, after.wanted.store.directory, workers)
    tell(doing=None)
    return after


def _ended(demand: Demand, stored: set[str], made_from: Mapping[str, Any]) -> DynamicsSummary:
    """Write the table of outcomes and the record of a dynamics after the run; return its summary.

    stored : the segments that workers say they have written, for which a slow file system is waited.
    made_from : what the cases are made from. SweeplibError if cases are still missing.
    """
    wanted, directory, dynamics = demand.wanted, demand.wanted.store.directory, demand.wanted.store.dynamics
    if demand.todo:
        wanted.store.wait_for(stored)
        wanted = wanted.refreshed()
    counts = wanted.counts()
    if counts["missing"]:
        raise SweeplibError(f"{counts['missing']} cases of {dynamics} are still missing in {directory}; run again")
    remove_block_locks(directory, dynamics)
    write_outcomes(wanted)
    if wanted.store.merge():
        wanted = wanted.refreshed()
    wanted.remember()
    with recorded_stage(directory, f"simulate.{dynamics}") as record:
        occurring = {status: count for status, count in counts.items() if count}
        record.write_result(made_from, digest=digest(wanted.ids.tobytes()), counts=occurring)
    return DynamicsSummary(counts, demand.todo)
