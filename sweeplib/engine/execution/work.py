"""The blocks of a run, computed by a cluster, or by processes of this machine if they are done before it starts.

A block is some missing cases, about two seconds of work (`blocks`).
"""

from collections.abc import Generator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from sweeplib.engine.design.cluster import MEMORY_SHARE
from sweeplib.engine.design.design import Design
from sweeplib.engine.execution.blocks import Block, BlockReport, run_block_apart
from sweeplib.engine.execution.child import Child, EndedError, Limits, lent
from sweeplib.engine.execution.clients import PERFORMANCE, LastingCluster, connected, performance_kept
from sweeplib.engine.execution.clusters import cluster_of
from sweeplib.engine.execution.clusters.dashboard import dashboard_link, page_link
from sweeplib.engine.execution.dispatch import dispatched
from sweeplib.engine.execution.estimates import Plan
from sweeplib.engine.execution.live.case_map import CaseMap
from sweeplib.engine.execution.probe import Probe
from sweeplib.engine.execution.progress import Listener, Steps, shown_progress
from sweeplib.engine.execution.queue import Queue, layouts_of
from sweeplib.engine.simulator import home_of
from sweeplib.engine.storage.records.stage_records import tell
from sweeplib.engine.storage.store.other_stores import Demand
from sweeplib.engine.storage.store.segment import RUNS
from sweeplib.errors import SweeplibError

if TYPE_CHECKING:
    from distributed import Client

START_SECONDS = 2.0
"""Seconds that a local cluster takes to start."""
MOST_DEATHS = 3
"""How many processes a block may end: from the second on its cases run one by one, in processes of their own."""
MOMENT = 1.0
"""Seconds after which a line says that the cases are still being listed."""
SECONDS_A_PROCESS = 0.25
"""Seconds of work for each of which one more process is used."""


@dataclass(frozen=True)
class Workload:
    """The missing cases of a sweep; to list them takes a while, and is done beside other things.

    demands : of the dynamics with missing cases, by name. plan : what these cost.
    """

    sweep: Design
    directory: Path
    demands: Mapping[str, Demand]
    plan: Plan

    def queue(self) -> Queue:
        """Return the missing cases, in blocks."""
        plans = self.plan.dynamics
        cases = (layouts_of(demand, plans[name].layouts) for name, demand in self.demands.items())
        return Queue(chain.from_iterable(cases))

    def maps(self) -> dict[str, CaseMap]:
        """Return the map of the cases of each dynamics, by name, for the page of the run."""
        return {name: CaseMap(demand.wanted) for name, demand in self.demands.items()}

    def is_short(self, workers: int | None) -> bool:
        """Return whether processes of this machine would be done, by the plan, before a local cluster has started."""
        cluster = cluster_of(self.sweep)
        measured = not any(plan.guessed for plan in self.plan.dynamics.values())
        is_local = cluster.workers_here() is not None and not cluster.performance_report
        # what the processes do in the seconds in which the cluster would start
        at_once = START_SECONDS * (cluster.expected_workers(workers) or 1)
        return is_local and measured and self.plan.cpu_range.most < at_once


Stored = dict[str, set[str]]
"""The names of the segments that workers say they have written, by dynamics."""


def computed_cases(
    work: Workload, on: "Client | int | None", lasting: LastingCluster | None = None, *, show: bool
) -> Stored:
    """Compute all blocks on a cluster, or by processes of this machine if that is short; return what was stored.

    on : a client, or the number of workers of the sweep's own cluster (None: as the config says).
    lasting : the cluster that is used instead of the sweep's own, if it runs. show : whether the progress is.
    """
    is_there = lasting is not None and lasting.client is not None
    if isinstance(on, int | None) and not is_there and work.is_short(on):
        return _by_processes(work, on, show=show)
    return _by_cluster(work, on, show=show, lasting=lasting)


def _by_processes(work: Workload, workers: int | None, *, show: bool) -> Stored:
    """Compute all blocks in processes of this machine, at most as many as the cluster would have workers.

    workers : their number, None for what the config says. show : whether the progress is.
    """
    seconds = work.plan.cpu_range.most
    cluster = cluster_of(work.sweep)
    with ThreadPoolExecutor(1) as beside:
        queue = _listed(beside.submit(work.queue), work, show=show)
    processes = min(1 + int(seconds / SECONDS_A_PROCESS), cluster.expected_workers(workers) or 1)
    with shown_progress(work.sweep.name, work.plan.todo, queue.wholes, processes, show=show) as progress:
        progress.run_begins(f"no cluster is started for {seconds:.1f} s of work")
        memory, module = cluster.memory_here(workers), home_of(work.sweep.simulator)
        return _followed(computed_by_processes(queue, processes, memory, module), progress)


def _by_cluster(work: Workload, on: "Client | int | None", *, show: bool, lasting: LastingCluster | None) -> Stored:
    """Compute all blocks on a cluster, which starts while the cases are listed; see `computed_cases`."""
    from sweeplib.engine.execution.live.teller import teller_of

    cluster = cluster_of(work.sweep).in_results(work.directory)
    # `on` is a number or None, or else a client, which stays open
    with ThreadPoolExecutor(1) as beside:
        listing = beside.submit(work.queue)
        expected = cluster.expected_workers(on) if isinstance(on, int | None) else None
        tell(doing="starting the workers")
        start = connected if lasting is None else lasting.connected
        with start(cluster, on) if isinstance(on, int | None) else nullcontext(on) as client:
            queue = _listed(listing, work, show=show)
            performance = work.directory / PERFORMANCE if cluster.performance_report else None
            sharing = _workers(queue, client, expected)
            with (
                performance_kept(client, performance),
                shown_progress(work.sweep.name, work.plan.todo, queue.wholes, sharing, show=show) as progress,
            ):
                teller = teller_of(client, work, progress)
                link = dashboard_link(client)
                page = page_link(link) if link and teller.has_page else None
                teller.run_begins(f"dashboard: {link or 'none'}", link, page)
                wait, problem = cluster.wait_for_workers, cluster.problem
                done = dispatched(client, queue, teller, wait, expected=expected, problem=problem, probe=_probe(work))
                return _followed(done, teller)


def _followed(done: Generator[tuple[Block, BlockReport], None, None], listener: Listener) -> Stored:
    """Return what blocks have stored; the listener is told of each that is done, and of the end."""
    stored = Stored()
    with closing(done):
        for block, report in done:
            listener.task_ended(block, report)
            names = {*report.stored_in, *([report.segment] if report.segment else [])}
            if names:
                stored.setdefault(block.dynamics, set()).update(names)
    listener.run_ended()
    return stored


def _listed(listing: "Future[Queue]", work: Workload, *, show: bool) -> Queue:
    """Return the queue once the cases are listed; a line says so if that takes a while, as it does for many shapes."""
    if wait([listing], MOMENT).not_done:
        with Steps(work.sweep.name if show else None).step("listing the cases"):
            wait([listing])
    return listing.result()


def _workers(queue: Queue, client: "Client", expected: int | None) -> int:
    """Return the number of workers that share the work; 0 if it is not known, or if costs of cases are guessed."""
    if not all(whole.measured for whole in queue.wholes):
        return 0
    return sum(client.nthreads().values()) if expected is None else expected


def _probe(work: Workload) -> Probe:
    """Return what workers are asked: the folder of the runs, the plugins, and the identity of a case per dynamics."""
    cases = [case for name in work.demands for case in work.sweep.probed(name)[:1]]
    folder = work.directory.resolve() / RUNS
    return Probe.of(str(folder), work.sweep.plugins, ((case, case.identity()) for case in cases))


def computed_by_processes(
    queue: Queue, workers: int, memory: int, module: str
) -> Generator[tuple[Block, BlockReport], None, None]:
    """Yield each block of a queue with its report as it is done; `workers` processes may take `memory` bytes each.

    The processes import `module`, that of the simulator, before their first block. A block that ends its process is
    computed again (`blocks`). SweeplibError if it ends `MOST_DEATHS` processes.
    """
    idle: SimpleQueue[Child] = SimpleQueue()
    limits = Limits(memory=int(MEMORY_SHARE * memory))
    with ExitStack() as stack:
        for _ in range(workers):
            idle.put(stack.enter_context(lent(queue.wholes[0].plugins, module)))
        pool = ThreadPoolExecutor(workers)
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        running: dict[Future[BlockReport], Block] = {}
        while running or queue:
            while queue and len(running) < workers:
                block = queue.block(workers)
                running[pool.submit(_report, block, idle, limits)] = block
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                block, report = running.pop(future), future.result()
                queue.learn(block, report)
                yield block, report


def _report(block: Block, idle: "SimpleQueue[Child]", limits: Limits) -> BlockReport:
    """Return the report of a block that an idle process computes, or after its death the next fork: a thread's work."""
    child, problem = idle.get(), ""
    try:
        for _ in range(MOST_DEATHS):
            try:
                report: BlockReport | SweeplibError = child.call(run_block_apart, block, limits.memory, limits=limits)
            except EndedError as error:
                problem = str(error)
            else:
                if isinstance(report, SweeplibError):
                    raise report
                return report
        raise SweeplibError(f"block {block.name} ends each process that computes it: {problem}")
    finally:
        idle.put(child)
