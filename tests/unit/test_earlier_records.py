"""Records of earlier versions, in a file for each purpose, are read as records of stages and converted at once."""

from pathlib import Path

import pytest

from sweeplib.engine.storage.dataset.versions import leftovers
from sweeplib.engine.storage.records import earlier_records as module
from sweeplib.engine.storage.records.files import write_json
from sweeplib.engine.storage.records.manifest import entry_of
from sweeplib.engine.storage.records.stage_records import (
    forget_record,
    record_path,
    recorded_stage,
    stage_record,
    stage_records,
    tell,
)

MADE_FROM = {"settings": "0f", "numerics": {"ode": "1e"}}
FAILURE = {"kind": "figure", "name": "odd", "exception": "ValueError: odd", "traceback": "", "reproduce": ""}
PLOT = FAILURE | {"kind": "plot", "name": "risk"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the records of 0.3.0, and a file of a person beside them."""
    write_json(tmp_path / "plan.done.json", {"cases": {"ode": 4}, "made_from": MADE_FROM})
    marker = {"sweep": "scan", "dynamics": "ode", "cases": {"ok": 3, "failed": 1}, "digest": "2d"}
    write_json(tmp_path / "ode.done.json", marker | {"made_from": MADE_FROM})
    write_json(tmp_path / "dataset.done.json", {"cases": {}, "digest": "3c"})
    write_json(
        tmp_path / "dataset.zarr/manifest.json", {"files": {"c/0": [1, "4b"]}, "made_from": MADE_FROM}, indent=None
    )
    write_json(tmp_path / "analysis/exit_times.done.json", {"analysis": "exit_times", "digest": "5a"})
    write_json(tmp_path / "analysis/exit_times.zarr/manifest.json", {"files": {}, "made_from": {"dataset": "3c"}})
    for name in ("figures/odd", "report/index"):
        entries = {f"{Path(name).name}.png": entry_of("", b"")}
        write_json(tmp_path / f"{name}.manifest.json", {"files": entries, "made_from": {"dataset": "3c"}})
    write_json(tmp_path / "failures/figure.odd.json", FAILURE)
    write_json(tmp_path / "failures/plot.risk.json", PLOT)
    write_json(
        tmp_path / "jobs/simulate.json", {"name": "simulate", "started": 1.0, "ended": 2.0, "problem": "no room"}
    )
    write_json(tmp_path / "journal/complete.json", {"failed": False})
    (tmp_path / "jobs" / "mine.json").write_text("{}")
    return tmp_path


def check(folder: Path) -> None:
    """Check what the records of the folder say."""
    records = stage_records(folder)
    assert records["plan"].counts == {"ode": 4} and records["plan"].made_from == MADE_FROM
    ode = records["simulate.ode"]
    assert (ode.counts, ode.digest, ode.made_from) == ({"ok": 3, "failed": 1}, "2d", MADE_FROM)
    assert (records["finalise"].digest, records["finalise"].files) == ("3c", {})
    assert records["finalise"].is_of(MADE_FROM) and not records["finalise"].is_of({"settings": "other"})
    assert records["analyse.exit_times"].digest == "5a" and records["analyse.exit_times"].is_of({"dataset": "3c"})
    figure, report = records["figure.odd"], records["report"]
    assert set(figure.files) == {"figures/odd.png"} and figure.failures == [FAILURE]
    assert set(report.files) == {"report/index.png"} and report.failures == [PLOT]
    assert records["simulate"].problem == "no room" and records["simulate"].ended == 2.0
    assert {name for name, record in records.items() if record.outcome} == {"simulate"}
    assert all(stage_record(folder, name) == record for name, record in records.items())


def test_earlier_records_are_read_where_they_are(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    check(folder)
    assert sorted(folder.rglob("*")) == before


def test_the_first_stage_that_writes_converts_all_and_leaves_files_of_others(folder: Path) -> None:
    with recorded_stage(folder, "analyse.other"):
        tell(done=1)
    check(folder)
    assert stage_record(folder, "analyse.other").done == 1
    left = {path.relative_to(folder).as_posix() for path in folder.rglob("*.json") if "stages" not in path.parts}
    assert left == {"jobs/mine.json", "dataset.zarr/manifest.json", "analysis/exit_times.zarr/manifest.json"}


def test_a_stage_that_is_to_run_again_has_no_earlier_record_either(folder: Path) -> None:
    forget_record(folder, "simulate.ode")
    assert stage_record(folder, "simulate.ode").made_from == {}
    assert stage_record(folder, "plan").counts == {"ode": 4}


def test_a_conversion_that_is_killed_leaves_the_earlier_ones(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes = 0

    def killed(path: Path, record: dict) -> None:
        nonlocal writes
        writes += 1
        if writes == 3:
            raise KeyboardInterrupt
        write_json(path, record)

    with monkeypatch.context() as patched:
        patched.setattr(module, "write_json", killed)
        with pytest.raises(KeyboardInterrupt):
            forget_record(folder, "report")
    check(folder)
    (killed,) = folder.glob(".stages.*.partial")
    written = sorted(killed.iterdir())
    (killed / "mine.json").write_text("{}")
    assert len(written) == 2 and sorted(leftovers(folder)) == written
    forget_record(folder, "report")
    assert not record_path(folder, "report").exists() and record_path(folder, "plan").exists()
