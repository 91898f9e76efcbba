"""A finished sweep with cases of every outcome, in blocks of four, and the commands on it."""

import io
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from unittest.mock import patch

import numpy as np
from click.testing import CliRunner

from sweeplib.commands.cli import app
from sweeplib.engine.storage.store.run_store import RunStore
from sweeplib.engine.storage.store.segment import Segment, segment_bytes, write_content
from tests.faults.sweeps import files
from tests.in_process import InProcess

CONFIG = """\
name: verified
problem: {k: 1, d: 50, Delta: 0, activation: square}
grid: {gamma: [0.1, 0.2, 101, 104], p: [1, 2]} # some of the last two raise and diverge
seeds: 6
dynamics: [calm]
times: [1, 2]
thresholds: [0.1]
observables: [risk, overlap_M]
analyses: [exit_times]
figures: []
plugins: [tests.faults.troubled]
cluster: {kind: in_process, block_size: 4}
"""
STEP = re.compile(r"^\w+: .* \.\.\. \d+\.\d s\n", re.MULTILINE)


@dataclass(frozen=True)
class Done:
    """A finished sweep: its config, and the folder of its results."""

    config: Path

    @property
    def directory(self) -> Path:
        return self.config.parent / "results" / "verified"

    @property
    def dataset(self) -> dict[str, bytes]:
        return files(self.directory / "dataset.zarr")

    def told(self, command: str, *arguments: str, typed: str = "") -> tuple[int, str]:
        """Return the exit status of a command, and its output without its steps; its debugger reads what is `typed`."""
        words = command, str(self.config), *arguments, "--results", str(self.config.parent / "results")
        # the runner gives a debugger the streams with which Python has started, that of older releases its own
        shown = io.StringIO()
        with patch.multiple(sys, __stdin__=io.StringIO(typed), __stdout__=shown):
            result = CliRunner().invoke(app, words, input=typed)
        return result.exit_code, shown.getvalue() + result.stdout + STEP.sub("", result.stderr)

    def verified(self, *arguments: str) -> tuple[int, dict]:
        """Return the exit status of `verify --json`, and what it says."""
        status, said = self.told("verify", "--json", *arguments)
        return status, json.loads(said[said.index("{") :])

    @property
    def segments(self) -> list[Segment]:
        """The segments of the run store, those of a layout in the order of their first case."""
        segments = RunStore(self.directory, "calm").segments
        return sorted(segments, key=lambda segment: (segment.layout, repr(segment.cases(slice(1))[0])))

    def replace_values(self, segment: Segment, **values: np.ndarray) -> Segment:
        """Write a segment again with other values of variables, as if they had been computed; return it."""
        columns = {"case_id": segment.ids, "status": segment.status} | segment.index
        columns |= {name: segment.data(name) for name in segment.variables} | values
        segment.path.unlink()
        return Segment(write_content(self.directory, "calm", segment_bytes(segment.header, columns)))


class RegisteredInProcess(InProcess):
    """Run one worker thread beside the test."""

    kind: Literal["in_process"] = "in_process"
