"""Faults of a machine are no outcome of a case: its cache of machine code, its disk, its libraries, its processes."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from itertools import product
from pathlib import Path

import pytest
from numba.core import caching

import sweeplib
from sweeplib.config import from_mapping
from sweeplib.engine.execution.guard import Allowance, computed_here
from sweeplib.engine.execution.machine import UnfitError, unfit
from sweeplib.errors import SweeplibError
from tests.faults.cluster_of_others import Cluster
from tests.faults.commands import SWEEPLIB
from tests.faults.test_places import SWEEP
from tests.tiers import slow_but

KERNEL = """
import sys
from functools import partial
import numba
import sweeplib.networks.simulation
from sweeplib.networks.numerics.compiled import specialised

def doubled(x):
    return 2 * x

kernel = specialised(doubled)
print(kernel(1.5), len(kernel.stats.cache_hits))
"""
LOCATOR = getattr(caching, "UserProvidedCacheLocator", None) or caching._UserProvidedCacheLocator
"""Its name had an underscore in numba 0.61."""
CASES_LEFT = "no case counts as failed by that"


def flip(path: Path) -> None:
    """Change a bit of the machine code, which numba would run."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def of_another(path: Path) -> None:
    path.write_bytes(b"cos\nsystem\n(S'exit 1'\ntR.")


@pytest.mark.parametrize(
    ("kind", "harm"), slow_but(product(["nbi", "nbc"], [empty, truncate, flip, of_another]), ("nbi", empty))
)
def test_damaged_machine_code_is_compiled_again_with_a_line(
    kind: str, harm: Callable[[Path], None], tmp_path: Path
) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)

    def ran() -> "subprocess.CompletedProcess[str]":
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        words = [sys.executable, "kernel.py"]
        return subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    for hits in (0, 1):
        assert ran().stdout.split() == ["3.0", str(hits)]
    [file] = (tmp_path / "cache").rglob(f"*.{kind}")
    harm(file)
    done = ran()
    assert done.stdout.split() == ["3.0", "0"], done.stderr
    [line] = done.stderr.splitlines()
    assert line == f"sweeplib: {file}: damaged machine code in the cache; it is compiled again"
    again = ran()
    assert (again.stdout.split(), again.stderr) == (["3.0", "1"], "")


def copied_cache(folder: Path) -> None:
    """Copy the machine code of the library to where numba looks for it if the variable names this folder."""
    package = Path(sweeplib.__file__).parent
    for source in package.rglob("*.py"):
        place = folder / LOCATOR.get_suitable_cache_subpath(str(source))
        for code in (source.parent / "__pycache__").glob(f"{source.stem}.*.nb?"):
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy2(code, place)


@pytest.mark.slow
@pytest.mark.parametrize("command", slow_but(["run", "sweep"], "run"))
def test_a_sweep_with_a_damaged_cache_has_all_its_cases(command: str, tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SWEEP)
    copied_cache(tmp_path / "cache")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    words = [SWEEPLIB, command, "small.yaml"]
    for harm in (lambda: None, lambda: [empty(index) for index in small_kernels(tmp_path / "cache")]):
        harm()
        shutil.rmtree(tmp_path / "results", ignore_errors=True)
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    log = tmp_path / "results/small/journal/snakemake.log"
    said = done.stderr + (log.read_text() if log.exists() else "")
    assert "damaged machine code in the cache; it is compiled again" in said
    assert "EOFError" not in said and "0 failed" in done.stdout + done.stderr


def small_kernels(cache: Path) -> list[Path]:
    """Return the indices of kernels that take little time to compile."""
    return [index for index in cache.rglob("*.nbi") if _bytes_of_code(index) < 20_000]


def _bytes_of_code(index: Path) -> int:
    return sum(data.stat().st_size for data in index.parent.glob(f"{index.stem}.*.nbc"))


FAULTS = {
    "disk": "raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), '/scratch/of/plugin')",
    "library": "import of_a_node_that_lacks_it",
    "files": "raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))",
    "disk, by way of another": "raise RuntimeError('no table') from OSError(errno.EIO, 'Input/output error')",
}
SAID = {
    "disk": "/scratch/of/plugin: no room to write (No space left on device)",
    "library": "No module named 'of_a_node_that_lacks_it'",
    "files": "Too many open files",
    "disk, by way of another": "Input/output error",
}
PLUGIN = """
import errno
import errno
import os
from tests.faults.troubled import Calm
from sweeplib.networks.dynamics.dynamics import DYNAMICS

class Faulty(Calm):
    name = "faulty"
    label = "Faulty"

    def advance(self, to, deadline=float("inf")):
        if not os.path.exists(os.path.join(os.path.dirname(__file__), "mended")):
            FAULT
        super().advance(to, deadline)

DYNAMICS.register("faulty", Faulty)
"""
FAULTY = SWEEP.replace("sgd_chain", "faulty").replace("p: 1, ", "p: 2, ") + "plugins: [faulty.py]\n"


@pytest.mark.parametrize(
    ("fault", "kind"),
    slow_but([(fault, kind) for fault in FAULTS for kind in ("local", "processes")], ("library", "processes")),
)
def test_a_fault_of_the_machine_ends_the_run_and_is_no_status(fault: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "faulty.py").write_text(PLUGIN.replace("FAULT", FAULTS[fault]))
    cluster = "local, block_size: 4," if kind == "local" else "local,"
    (tmp_path / "small.yaml").write_text(FAULTY.replace("local,", cluster))
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}

    def ran(command: str) -> "subprocess.CompletedProcess[str]":
        words = [SWEEPLIB, command, "small.yaml"]
        return subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    done = ran("run")
    assert done.returncode == 1, done.stderr
    last = done.stderr.splitlines()[-1]
    assert SAID[fault] in last and CASES_LEFT in last and "RaisedError" not in done.stderr
    assert "Traceback" not in done.stderr
    (tmp_path / "mended").touch()
    done = ran("run")
    assert done.returncode == 0, done.stderr
    assert "8 cases computed now; in all 0 failed" in done.stdout


HERE, THERE = "127.0.0.1", "127.0.0.2"
"""Two machines, as far as the addresses of their workers say."""
AT_ONE = f"""
            import time
            from distributed import get_worker
            begun = os.path.join(os.path.dirname(__file__), "begun")
            if "{THERE}" in get_worker().address:
                open(begun, "w").close()
                {FAULTS["library"]}
            while not os.path.exists(begun):  # nothing ends before the fault
                time.sleep(0.1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("hosts", [(HERE, THERE), (THERE,)])
def test_the_cases_of_a_machine_with_a_fault_go_on_at_another(hosts: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "faulty.py").write_text(PLUGIN.replace("FAULT", AT_ONE))
    cluster = f"{{kind: scheduler_file, path: {tmp_path}/scheduler.json, block_size: 1}}"
    (tmp_path / "small.yaml").write_text(FAULTY.replace('{kind: local, dashboard_address: ":0"}', cluster))
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    with ExitStack() as processes:
        machines = Cluster(tmp_path, processes)
        workers = [machines.worker("--host", host) for host in hosts]
        words = [SWEEPLIB, "run", "small.yaml"]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        [line] = [line for line in done.stderr.splitlines() if SAID["library"] in line]
        assert CASES_LEFT in line and "Traceback" not in done.stderr
        if HERE in hosts:
            assert done.returncode == 0 and line.endswith("; its workers end, and others go on")
            assert "8 cases computed now; in all 0 failed" in done.stdout
            assert workers[1].wait(60) == 0 and workers[0].poll() is None
        else:
            assert done.returncode == 1 and line == done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "error", [FileNotFoundError(2, "No such file"), ArithmeticError("x"), MemoryError(), OSError("x")]
)
def test_other_errors_are_those_of_a_case(error: BaseException) -> None:
    assert unfit(error) is None


def test_errors_in_the_caches_of_code_are_the_machines(tmp_path: Path) -> None:
    spoilt = compile("def load(): raise EOFError('Ran out of input')", "/x/numba/core/caching.py", "exec")
    namespace: dict = {}
    exec(spoilt, namespace)
    with pytest.raises(EOFError) as raised:
        namespace["load"]()
    assert isinstance(unfit(raised.value), SweeplibError)


def test_a_full_disk_is_no_outcome_of_a_call(tmp_path: Path) -> None:
    """The simulator of a function says that the machine is to blame, and what runs its cases does not ask once more."""
    lines = ["from sweeplib import simulator", "@simulator(y='1')", "def full(x: float):", f"    {FAULTS['disk']}"]
    (tmp_path / "full.py").write_text("\n".join(["import errno, os", *lines]))
    sweep = from_mapping({"name": "full", "simulator": "full.py", "grid": {"x": [1, 2]}, "figures": []}, tmp_path)
    with pytest.raises(UnfitError, match=CASES_LEFT):
        computed_here([case for _, case in sweep.cases("full")], Allowance(), pytest.fail)
