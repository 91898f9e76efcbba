"""Runs that go on from where they ended: a longer horizon has the bits of a run of that length."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sweeplib.execution import work
from sweeplib.simulation import Recording, Status
from sweeplib.storage.records.files import read_lines
from sweeplib.storage.store.inventory import inventory
from sweeplib.storage.store.journal import journal
from sweeplib.storage.store.other_stores import COMPUTE_ALL, other_cases
from sweeplib.storage.store.run_store import RunStore
from tests.in_process import computed
from tests.unit.test_other_stores import alone, planned, ran, sweep_of, version

pytestmark = pytest.mark.usefixtures("forked")

SHORT = Recording((0.0, 1.0, 2.0), (0.1, 0.4), ("risk",), "exit", keep_ends=True)
LONG = replace(SHORT, times=(0.0, 1.0, 2.0, 3.0, 4.0))


@pytest.fixture(autouse=True)
def _shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(COMPUTE_ALL)
    monkeypatch.setattr(work, "dispatched", computed)
    monkeypatch.setattr(os, "fsync", lambda _: None)


def begun(directory: Path) -> int:
    """Return the number of cases that went on, by the journal."""
    return sum(line.get("begun", 0) for line in read_lines(journal(directory, "sgd_chain")))


def test_a_longer_horizon_goes_on(tmp_path: Path) -> None:
    sweep = sweep_of("a", recording=SHORT)
    ran(sweep, tmp_path)
    longer = replace(sweep, recording=LONG)
    assert planned(longer, tmp_path) == (30, {}, 0)
    assert ran(longer, tmp_path) == {"sgd_chain": 30}
    assert begun(tmp_path / "a") == 28, "two runs have diverged: they are computed again"
    assert version(longer, tmp_path) == alone(longer, tmp_path)
