"""The missing cases of a run, cut into blocks as they are handed out, by what cases of the same layout have taken.

A layout is all cases of one shape and similar cost; a block is some of them, the task of a worker.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from sweeplib.engine.execution.blocks import Block, BlockReport
from sweeplib.engine.execution.clusters import cluster_of
from sweeplib.engine.execution.earlier_runs import earlier_runs
from sweeplib.engine.execution.estimates import LayoutPlan, case_bytes
from sweeplib.engine.storage.records.files import digest
from sweeplib.engine.storage.store.checkpoints import CheckpointFolder
from sweeplib.engine.storage.store.inventory import order_of_work
from sweeplib.engine.storage.store.other_stores import Demand, Places

BLOCK_SECONDS = 2.0
"""The work of a usual block."""
LONGEST_BLOCK_SECONDS = 60.0
"""The work that a crash may cost a worker, and the time for which the last worker may keep the others waiting."""
BLOCK_BYTES = 64 * 2**20
"""The bytes of a block's results, uncompressed, at most."""
MOST_CASES = 2**15
"""Of a block."""
SECONDS_A_WORKER = 0.002
"""The seconds that blocks take at most are so many for each worker: a scheduler then hands out 500 a second."""
GROWTH = 2
"""How many times the cases of the largest block that is done the next one has at most."""
LAST_SECONDS = 0.5
"""Towards the end of a run blocks are shorter, so that all workers have some; none is made shorter than this."""
SHARES = 2
"""In how many blocks a worker takes its share of what is left."""

Lanes = tuple[int, int]
"""The smallest and the largest number of cases that a kernel computes together (`Simulator.lanes`)."""


def block_size(
    seconds: float, nbytes: int, lanes: Lanes = (1, 1), target: float = BLOCK_SECONDS, most: int = MOST_CASES
) -> int:
    """Return the number of cases of a block: about `target` seconds of work, in whole groups that lanes compute.

    seconds, nbytes : of one case: its work, and its results. lanes : how many cases a kernel computes together, at
        least and at most.
    The number is from that of the most lanes to `most`, but fewer if so many take more than a minute or their results
    exceed 64 MiB.
    """
    cases = min(max(int(target / max(seconds, 1e-9)), lanes[1]), most, max(1, BLOCK_BYTES // nbytes))
    cases = max(1, min(cases, int(LONGEST_BLOCK_SECONDS / max(seconds, 1e-9))))
    group = next((width for width in reversed(lanes) if width <= cases), 1)
    return cases // group * group


def even(size: int, cases: int, lanes: Lanes = (1, 1)) -> int:
    """Return the block size that divides `cases` evenly into as many blocks as `size` does, in groups of lanes."""
    # -(-a // b) is a / b, rounded up
    if not cases:
        return size
    equal = -(-cases // -(-cases // size))
    group = lanes[1] if equal > lanes[1] else lanes[0]
    return min(size, -(-equal // group) * group)


@dataclass
class LayoutCases:
    """The missing cases of a layout: `whole` has all of them, those from `first` on are not handed out yet.

    ids (n,) : the identities of all.
    lanes, nbytes : how many cases are computed together, and the bytes of the results of one.
    factor : within which their planned cost is known.
    size : the number of cases of a block if the config sets it, None if it follows from the cost.
    begun : where the earlier runs are from which some cases go on.
    first : the number of cases that are handed out.
    number : of the next block.
    seconds : what a case has taken in the blocks so far, None before the first one.
    computed : the most cases of a block that is done.
    """

    whole: Block
    ids: np.ndarray
    lanes: Lanes = (1, 1)
    nbytes: int = 1
    factor: float = 1.0
    size: int | None = None
    begun: Places | None = None
    first: int = 0
    number: int = 0
    seconds: float | None = None
    computed: int = 0

    def __len__(self) -> int:
        return len(self.whole) - self.first

    @property
    def seconds_left(self) -> float:
        """The seconds that the cases take which are not handed out."""
        return len(self) * (self.whole.seconds_a_case if self.seconds is None else self.seconds)

    @property
    def is_guess(self) -> bool:
        """Whether nothing is known of the cost of a case: no block is done, and no case was measured before."""
        return self.seconds is None and not self.whole.measured

    def cut(self, seconds: float) -> Block:
        """Return the next block, of cases that take about some seconds, which count as handed out from now on.

        Once a block is done, others have at most twice its cases: those that were quick may have failed at once.
        """
        # before any block is done, cases may be as dear as their cost is uncertain, and a guess says nothing
        cost = self.factor * self.whole.seconds_a_case if self.seconds is None else self.seconds
        most = min(MOST_CASES, max(GROWTH * self.computed, self.lanes[1])) if self.computed else MOST_CASES
        fitting = block_size(cost, self.nbytes, self.lanes, 0.0 if self.is_guess else seconds, most)
        count = min(self.size or fitting, len(self))
        cases = slice(self.first, self.first + count)
        places = self.whole.places[cases]
        block = replace(
            self.whole,
            number=self.number,
            places=places,
            count=count,
            digest=digest(self.ids[cases].tobytes()),
            begun=tuple(earlier_runs(self.begun, places)) if self.begun is not None else (),
        )
        self.first, self.number = self.first + count, self.number + 1
        return block

    def learn(self, report: BlockReport) -> None:
        """Take account of the time of a block; later blocks count more, because the first ones load code."""
        if computed := sum(report.computed.values()):
            mean, self.computed = report.seconds / computed, max(self.computed, computed)
            self.seconds = mean if self.seconds is None else self.seconds + (mean - self.seconds) / 4


class Queue:
    """The cases of a run that are not handed out yet; its length is their number. The costliest are first."""

    def __init__(self, layouts: Iterable[LayoutCases]) -> None:
        """Put layouts into their order: the costliest case first."""
        ordered = sorted(layouts, key=lambda layout: -layout.whole.seconds_a_case)
        self._layouts = {(layout.whole.dynamics, layout.whole.layout): layout for layout in ordered}
        self._has_learned = False
        # those that have cases left
        self._waiting = deque(layout for layout in ordered if len(layout))

    @property
    def wholes(self) -> list[Block]:
        """All cases of each layout as one block, handed out or not."""
        return [layout.whole for layout in self._layouts.values()]

    def __len__(self) -> int:
        return sum(map(len, self._waiting))

    @property
    def is_blind(self) -> bool:
        """Whether no block of the run is done yet, and nothing is known of the cost of the next cases."""
        return not self._has_learned and bool(self._waiting) and self._waiting[0].is_guess

    def block(self, workers: int) -> Block:
        """Return the next block, of the costliest layout, for a number of workers that share what is left.

        Its seconds are those of a usual block, or more for many workers; less as the end of the run comes near.
        """
        share = sum(layout.seconds_left for layout in self._waiting) / (SHARES * workers)
        longest = max(BLOCK_SECONDS, SECONDS_A_WORKER * workers)
        layout = self._waiting[0]
        block = layout.cut(min(longest, max(LAST_SECONDS, share)))
        if not len(layout):
            self._waiting.popleft()
        return block

    def learn(self, block: Block, report: BlockReport) -> None:
        """Take account of the time of a block that is done."""
        self._layouts[block.dynamics, block.layout].learn(report)
        self._has_learned = True


def layouts_of(demand: Demand, plans: Mapping[str, LayoutPlan]) -> Iterator[LayoutCases]:
    """Yield the missing cases of a dynamics by their layouts; `plans` are those of the layouts, by name."""
    wanted, sweep = demand.wanted, demand.wanted.sweep
    directory, size, checkpoints = str(wanted.store.directory.resolve()), cluster_of(sweep).block_size, None
    if sweep.checkpoint is not None:
        checkpoints = CheckpointFolder(directory, sweep.checkpoint, sweep.recording.keep_ends)
    for name, missing in wanted.missing.items():
        plan, case = plans[name], wanted.cases(missing[:1])[0]
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
            suspect=plan.suspect,
            timeout=sweep.timeout,
            plugins=sweep.plugins,
            checkpoints=checkpoints,
        )
        # cases with one solution are computed together at the cost of one, and lie beside each other
        together = round(len(missing) / len(wanted.solved(missing))) if wanted.shares_solutions else 1
        least, most = case.simulator.lanes(case)
        lanes = least, max(most, together)
        yield LayoutCases(whole, wanted.ids[missing], lanes, case_bytes(case), plan.factor, size, demand.begun)
