"""What other programs and people leave around a command: variables of the environment, settings, names of folders."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.faults.commands import SWEEPLIB
from tests.faults.sweeps import files

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FUNCTION = """
import numpy as np
import sweeplib

@sweeplib.simulator(depth="m")
def fall(x: float, kind: str, seed: int):
    "Return a depth."
    return x + np.random.default_rng(seed).normal() + (kind == "b")
"""
SWEEP = """
name: own
simulator: FILE
grid: {x: [0.1, 0.2], kind: [a, b]}
seeds: 4
cluster: {workers: 1, block_size: 4KEYS}
"""
ON_A_CLUSTER = ', performance_report: true, dashboard_address: ":0"'
NOWHERE = "http://127.0.0.1:9"
"""An address at which nothing answers."""
DASK = {
    "SCHEDULER__IDLE_TIMEOUT": "1s",
    "SCHEDULER__NO_WORKERS_TIMEOUT": "1s",
    "SCHEDULER__PRELOAD": "no_such_module",
    "SCHEDULER__ALLOWED_FAILURES": "0",
    "NANNY__PRELOAD": "no_such_module",
    "NANNY__PRE_SPAWN_ENVIRON": "3",
    "WORKER__PRELOAD": "no_such_module",
    "WORKER__LIFETIME__DURATION": "1s",
    "WORKER__MULTIPROCESSING_METHOD": "fork",
    "COMM__DEFAULT_SCHEME": "tls",
    "COMM__REQUIRE_ENCRYPTION": "True",
    "COMM__TLS__CA_FILE": "/nonexistent",
}
ODD = "a b:c#{d}%s \n$HOME 'ü\\"
"""The name of a folder."""
SURROUNDINGS: dict[str, dict[str, str]] = {
    "settings of Dask for other clusters": {
        "DASK_SCHEDULER_ADDRESS": "tcp://127.0.0.1:9",
        "DASK_TEMPORARY_DIRECTORY": "/nonexistent",
        **{f"DASK_DISTRIBUTED__{name}": value for name, value in DASK.items()},
    },
    "a job of a batch system behind a proxy": {
        **{f"{name}_proxy": NOWHERE for name in ("http", "https", "all")},
        **{f"{name}_PROXY": NOWHERE for name in ("HTTP", "HTTPS", "ALL")},
        **{f"SLURM_{name}": "17" for name in ("JOB_ID", "JOBID", "MEM_PER_NODE", "CPUS_PER_TASK", "NTASKS", "PROCID")},
        "SLURM_CPU_BIND": "quiet,mask_cpu:0x1",
        "SLURM_JOB_NODELIST": "a[1-4]",
        "PBS_NODEFILE": "/nonexistent",
        "NSLOTS": "0",
    },
    "settings of Python": {
        "PYTHONWARNINGS": "error",
        "PYTHONOPTIMIZE": "2",
        "PYTHONHASHSEED": "12345",
        "PYTHONNOUSERSITE": "1",
        "PYTHONSTARTUP": "/nonexistent",
        "PYTHONPATH": "/nonexistent:/dev/null",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "LC_ALL": "C",
    },
    "settings of everything else": {
        "MPLBACKEND": "module://no.such",
        "MATPLOTLIBRC": "/nonexistent",
        "XDG_CACHE_HOME": "/proc/nothing",
        "XDG_CONFIG_HOME": "/proc/nothing",
        "XDG_RUNTIME_DIR": "/proc/nothing",
        "TERM": "no-such",
        "COLUMNS": "0",
        "TZ": "No/Where",
        "GIT_DIR": "/nonexistent",
        "BASH_ENV": "/nonexistent",
        "SHELL": "/bin/false",
        "SNAKEMAKE_PROFILE": "/nonexistent",
        "ZARR_DEFAULT_ZARR_FORMAT": "2",
        "OMP_NUM_THREADS": "",
    },
}


def written(folder: Path, keys: str = "", function: str = "fall.py:fall") -> None:
    """Write a sweep of a function, and the function."""
    (folder / "fall.py").write_text(FUNCTION)
    (folder / "own.yaml").write_text(SWEEP.replace("FILE", function).replace("KEYS", keys))


def ran(folder: Path, *words: str, umask: str = "022", **variables: str) -> tuple[int, str]:
    """Return the exit status and the output of a command."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | variables
    command = ["sh", "-c", f'umask {umask}; exec "$@"', "sh", SWEEPLIB, *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False, timeout=280)
    return done.returncode, (done.stdout + done.stderr).decode()


def chunks(results: Path) -> dict[str, bytes]:
    """Return the values of a dataset as they are stored."""
    return {name: content for name, content in files(results / "own" / "dataset.zarr").items() if "/c/" in name}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the sweep has run, in the environment of these tests."""
    folder = tmp_path_factory.mktemp("usual")
    written(folder)
    status, said = ran(folder, "sweep", "own.yaml")
    assert status == 0, said
    return folder


@pytest.fixture(scope="module")
def usual(finished: Path) -> dict[str, bytes]:
    """The values of that sweep."""
    return chunks(finished / "results")


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_what_is_set_for_other_programs_does_no_harm(name: str, usual: dict[str, bytes], tmp_path: Path) -> None:
    written(tmp_path, ON_A_CLUSTER)
    status, said = ran(tmp_path, "sweep", "own.yaml", **SURROUNDINGS[name])
    assert status == 0, said
    assert "all 16 cases ended ok" in said and "dashboard: http" in said
    assert chunks(tmp_path / "results") == usual
    assert not any(word in said for word in ("Warning", "Exception ignored", "Traceback")), said


def test_a_broken_file_of_settings_is_named_and_no_bug(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "dask.yaml").write_text("distributed: [\n")
    for command in ("analyse", "report"):
        status, said = ran(finished, command, "own.yaml", DASK_CONFIG=str(tmp_path))
        last = said.splitlines()[-1]
        assert status == 1 and f"'{tmp_path}/dask.yaml' is malformed" in last and "sweeplib" not in last, said


def test_a_name_may_have_any_letter(usual: dict[str, bytes], tmp_path: Path) -> None:
    """That of the working folder, of the folder of temporary files, of the config and of its function."""
    folder, temporary = tmp_path / ODD, tmp_path / f"t{ODD}"
    folder.mkdir()
    temporary.mkdir()
    written(folder, ON_A_CLUSTER, '"-fall, 100%.py:fall"')
    (folder / "fall.py").rename(folder / "-fall, 100%.py")
    (folder / "own.yaml").rename(folder / "-my sweep.yaml")
    status, said = ran(folder, "sweep", "--", "-my sweep.yaml", TMPDIR=str(temporary))
    assert status == 0 and chunks(folder / "results") == usual, said
    status, said = ran(tmp_path, "verify", f"{folder}/results/own", "--sample", "4")
    assert status == 0, said


def test_files_of_a_user_who_hides_all_are_for_no_others(usual: dict[str, bytes], tmp_path: Path) -> None:
    written(tmp_path)
    status, said = ran(tmp_path, "sweep", "own.yaml", umask="077")
    assert status == 0 and chunks(tmp_path / "results") == usual, said
    of_others = [path for path in (tmp_path / "results").rglob("*") if path.stat().st_mode & 0o077]
    assert not of_others
