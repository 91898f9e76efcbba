"""The process that measures what cases cost: python -m sweeplib.sweep.pilots, asked by `calibration`.

It reads pickles from standard input: (sys.path, plugins), then (cases, seconds) for each pilot. It writes lines of JSON
to what was its standard output: null once all that the cases need is compiled; then, unless `seconds` is None, the
seconds that they took and how many were done in that time, those given up counted by the part of their way that they
went.
"""

import json
import os
import pickle
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from sweeplib.dynamics import DYNAMICS
from sweeplib.simulation import Case, Status, run_cases
from sweeplib.sweep.block_size import lanes_of
from sweeplib.sweep.calibration import PAIR
from sweeplib.sweep.plugins import load_plugins

FEW_CASES = 16


def main() -> None:
    """Answer until there is no more to read."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a plugin prints is no answer
        path, plugins = pickle.load(sys.stdin.buffer)
        sys.path[:] = path  # plugins, and what they import, are found where the driver finds them
        load_plugins(plugins)
        with suppress(EOFError):
            while True:
                cases, seconds = pickle.load(sys.stdin.buffer)
                _taken(list(map(shortened, cases[:PAIR])), np.inf)
                _answer(answers, None)
                if seconds is not None:
                    _answer(answers, measured(cases, seconds))


def _answer(answers: Any, answer: Any) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def measured(cases: Sequence[Case], limit: float) -> tuple[float, float]:
    """The seconds that cases took, for about `limit` at most, and how many were done.

    Where they are computed in lanes, all together, as in a block; else first a few, then all if there is time.
    """
    few = cases if lanes_of(cases[0].dynamics)[1] > 1 else cases[:: -(-len(cases) // FEW_CASES)]
    seconds, done = _taken(few, limit)
    if len(few) < len(cases) and seconds * len(cases) <= (limit - seconds) * done:
        return _taken(cases, limit)
    return seconds, done


def shortened(case: Case) -> Case:
    """The same case, cut to its first own steps: what is compiled for it is what the case needs."""
    step = DYNAMICS[case.dynamics].step_length(case.numerical_options()) * case.problem.step_time()
    last = case.recording.times[-1]
    return replace(case, clock=min(case.clock, 3 * step / last)) if last > 0 else case


def _taken(cases: Sequence[Case], limit: float) -> tuple[float, float]:
    """The seconds that some cases take, and how many were done. What they raise is the run's to report."""
    started, done = time.perf_counter(), float(len(cases))
    with suppress(Exception):
        records = run_cases(cases, timeout=limit / len(cases))
        last = np.array([case.clock * case.recording.times[-1] for case in cases])
        part = np.clip(records.data["end_time"] / np.maximum(last, np.finfo(float).tiny), 0.0, 1.0)
        done = float(np.where(records.status == Status.timeout, np.nan_to_num(part), 1.0).sum())
    return time.perf_counter() - started, done


if __name__ == "__main__":
    main()
