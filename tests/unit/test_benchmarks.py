"""Every benchmark but those of whole sweeps works, so that `make bench` does not stop in the middle."""

import importlib

import pytest

from benchmarks.__main__ import PARTS


@pytest.mark.slow
@pytest.mark.parametrize("part", [part for part in PARTS if part != "scaling"])
def test_all_works_of_a_part(part: str) -> None:
    for benchmark in importlib.import_module(f"benchmarks.{part}").BENCHMARKS:
        for work in filter(None, (benchmark.ours, benchmark.baseline, benchmark.floor)):
            assert work() > 0, benchmark.name


@pytest.mark.rest
@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_imported(part: str) -> None:
    importlib.import_module(f"benchmarks.{part}")
