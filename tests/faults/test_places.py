"""Where people really work, by the command that they type: other users, file systems, containers, hubs, clocks."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.commands import SWEEPLIB, started
from tests.faults.persons import missing, put
from tests.faults.sweeps import wait_until
from tests.tiers import slow_but

SWEEP = """\
name: small
problem: {p: 1, k: 1, d: 40, Delta: 0, activation: square, spherical: true}
grid: {gamma: [0.1, 0.2]}
seeds: 4
dynamics: [sgd_chain]
times: [0, 1, 2]
thresholds: [0.1]
analyses: []
figures: []
cluster: {kind: local, dashboard_address: ":0"}
"""
NOBODY = "65534"
AS_NOBODY = f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups".split()
READING_ALL = ["--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"]
"""The interpreter of these tests may be where only its owner can read."""
MEMORY = Path("/sys/fs/cgroup/memory")


@pytest.fixture
def desk() -> Iterator[Path]:
    """A user's folder with a sweep, in which every user may write."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Path(folder).resolve()
        desk.chmod(0o777)
        (desk / "small.yaml").write_text(SWEEP)
        yield desk


def ran(desk: Path, *before: str, command: str = "sweep", **variables: str) -> "subprocess.CompletedProcess[str]":
    """Return a command on the sweep that has ended, started by `before` and with other variables of the environment."""
    words = [*before, SWEEPLIB, command, "small.yaml"]
    environment = os.environ | variables
    return subprocess.run(words, cwd=desk, env=environment, capture_output=True, text=True, check=False, timeout=280)


def assert_complete(desk: Path, done: "subprocess.CompletedProcess[str]") -> None:
    assert done.returncode == 0, done.stderr
    assert "all 8 cases ended ok" in done.stdout
    assert (desk / "results" / "small" / "report" / "index.html").exists()


def test_a_file_system_without_locks_is_refused_by_its_name(desk: Path, lacking: Path) -> None:
    done = ran(desk, command="plan", LD_PRELOAD=str(lacking), LACKING="flock", LACKING_UNDER=str(desk))
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("results/small: the file system here (") and "--results" in line


@pytest.mark.parametrize("of", slow_but(["another user", "a file"], "a file"))
def test_a_working_folder_in_which_snakemake_cannot_write_is_refused(desk: Path, of: str) -> None:
    """Such as / of a batch job, or the folder of a colleague who ran a sweep there."""
    before: list[str] = []
    if of == "another user":
        if os.geteuid() or shutil.which("setpriv") is None:
            pytest.skip("needs root and setpriv")
        before = ["env", f"HOME={desk}", *AS_NOBODY, *READING_ALL]
        (desk / ".snakemake").mkdir()
    else:
        (desk / ".snakemake").touch()
    done = ran(desk, *before)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith(f"{desk}/.snakemake: cannot be written (") and "--results" in line
    assert not (desk / "results").exists()


@pytest.mark.slow
def test_a_file_system_without_hard_links_and_fsync_of_folders_is_enough(desk: Path, lacking: Path) -> None:
    done = ran(desk, LD_PRELOAD=str(lacking), LACKING="link,fsync", LACKING_UNDER=str(desk))
    assert_complete(desk, done)
    said = [line for line in done.stderr.splitlines() if "the file system here" in line]
    assert len(said) == 1 and "no hard links" in said[0] and "no fsync of folders" in said[0]


@pytest.mark.slow
def test_a_system_that_lacks_what_macos_lacks_is_enough(desk: Path) -> None:
    assert_complete(desk, ran(desk, PYTHONPATH=str(Path(__file__).with_name("macos"))))


@pytest.mark.slow
@pytest.mark.parametrize("home", ["/nonexistent", "unset"])
def test_a_user_without_a_home_keeps_caches_in_a_private_folder(home: str, desk: Path) -> None:
    """As root the command is that of a user who can write neither sweeplib's folder nor a home."""
    before = ["env", "-u", "HOME"] if home == "unset" else []
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("needs setpriv")
        before = [*AS_NOBODY, *READING_ALL, *before]
    elif home == "unset":
        pytest.skip("this user has a home that can be written")
    (desk / "tmp").mkdir()
    (desk / "tmp").chmod(0o1777)
    planted = desk / "results" / ".cache" / "numba" / "planted"
    planted.parent.mkdir(parents=True)
    planted.touch()
    (desk / "results").chmod(0o777)
    done = ran(desk, *before, XDG_CACHE_HOME="", HOME=home, TMPDIR=str(desk / "tmp"))
    assert_complete(desk, done)
    [private] = (desk / "tmp").glob("sweeplib-*")
    assert private.stat().st_mode & 0o777 == 0o700 and (private / "sweeplib").is_dir()
    assert done.stderr.startswith(f"caches are kept in {private}: ")
    assert list(planted.parent.iterdir()) == [planted]
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("limits", ["ulimit -n 64; exec", "exec taskset -c 0", "exec 0<&- 1>&- 2>&-; exec"])
def test_few_open_files_one_processor_and_no_streams_are_enough(limits: str, desk: Path) -> None:
    done = ran(desk, "sh", "-c", f'{limits} "$@"', "sh")
    assert done.returncode == 0, done.stderr
    assert (desk / "results" / "small" / "report" / "index.html").exists()


@pytest.mark.slow
def test_root_with_a_package_and_a_home_that_are_read_only(desk: Path) -> None:
    package = Path(__file__).parents[2]
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("needs the right to mount")
    home = Path.home()
    mounts = "; ".join(f"mount --bind {path} {path}; mount -o remount,ro,bind {path}" for path in (package, home))
    done = ran(desk, "unshare", "-m", "sh", "-c", f'{mounts}; exec "$@"', "sh", XDG_CACHE_HOME="")
    assert_complete(desk, done)
    assert "caches are kept in /tmp/sweeplib-" in done.stderr


@pytest.mark.slow
def test_a_command_that_compiles_nothing_does_not_say_where_code_is_kept(desk: Path) -> None:
    if os.geteuid() or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv")
    command = [*AS_NOBODY, *READING_ALL, SWEEPLIB, "list", "dynamics"]
    environment = os.environ | {"HOME": "/nonexistent"}
    environment.pop("XDG_CACHE_HOME", None)  # numba takes an empty one for the working folder
    done = subprocess.run(command, cwd=desk, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "sgd_chain" in done.stdout
    assert done.stderr == ""


@pytest.fixture
def group() -> Iterator[Path]:
    """A new control group."""
    folder = MEMORY / f"sweeplib-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"needs control groups of version 1: {error}")
    yield folder
    wait_until(lambda: not (folder / "cgroup.procs").read_text())
    folder.rmdir()


@pytest.mark.slow
def test_a_container_with_little_memory_has_few_workers(desk: Path, group: Path) -> None:
    (group / "memory.limit_in_bytes").write_text(f"{900 * 10**6}")
    inside = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
    done = ran(desk, *inside)
    assert_complete(desk, done)
    (desk / "small.yaml").write_text(SWEEP.replace("local,", "local, workers: 8,").replace("seeds: 4", "seeds: 5"))
    done = ran(desk, *inside, command="plan")
    assert done.returncode == 2
    assert "each worker would have 112 MB of memory; expected at least 400 MB" in done.stderr


@pytest.mark.slow
def test_shared_memory_that_is_read_only_is_named(desk: Path) -> None:
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("needs the right to mount")
    mounts = "mount --bind /dev/shm /dev/shm; mount -o remount,ro,bind /dev/shm"
    done = ran(desk, "unshare", "-m", "sh", "-c", f'{mounts}; exec "$@"', "sh", command="run")
    assert done.returncode == 2
    assert "/dev/shm: " in done.stderr.splitlines()[-1] and "Read-only" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_a_dashboard_link_of_a_hub_ends_no_run(desk: Path) -> None:
    on_a_cluster = SWEEP.replace("local,", "local, performance_report: true,")
    (desk / "small.yaml").write_text(on_a_cluster.replace("figures: []", "figures: [risk_curves]"))
    link = "{JUPYTERHUB_SERVICE_PREFIX}/proxy/{port}/status"
    done = ran(desk, DASK_DISTRIBUTED__DASHBOARD__LINK=link, MPLBACKEND="qt4agg", FORCE_COLOR="1")
    assert_complete(desk, done)
    assert "dashboard: http://127.0.0.1:" in done.stderr
    assert "\x1b" not in done.stderr + done.stdout


@pytest.mark.slow
def test_files_of_a_person_are_there_after_a_sweep_by_any_user(desk: Path) -> None:
    """After one with more seeds and fewer values; test_upkeep.py has the other commands."""
    before: list[str] = []
    if os.geteuid() == 0 and shutil.which("setpriv"):
        before = ["env", f"HOME={desk}", *AS_NOBODY, *READING_ALL]
    assert_complete(desk, ran(desk, *before))
    persons = put(desk / "results" / "small")
    (desk / "small.yaml").write_text(SWEEP.replace("seeds: 4", "seeds: 8").replace("[0.1, 0.2]", "[0.1]"))
    assert_complete(desk, ran(desk, *before))
    assert not missing(persons)


@pytest.mark.slow
def test_a_clock_that_is_set_back_by_three_days_ends_no_run(
    desk: Path, lacking: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the worst moment: the certificates exist, and no worker has connected."""
    (desk / "back").write_text("0")
    monkeypatch.setenv("LD_PRELOAD", str(lacking))
    monkeypatch.setenv("CLOCK", str(desk / "back"))
    (desk / "small.yaml").write_text(
        SWEEP.replace("seeds: 4", "seeds: 600").replace("local,", "local, block_size: 16,")
    )
    command = started([SWEEPLIB, "run", "small.yaml"], desk)
    command.until_it_says("dashboard: ")
    (desk / "back").write_text(f"{3 * 24 * 3600}")
    until = time.monotonic() + 120
    while command.process.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    command.killed()
    assert command.process.returncode == 0, command.said.read_text()
    assert "1,200 cases computed now; in all 0 failed" in command.said.read_text()


@pytest.mark.slow
def test_a_folder_of_temporary_files_without_room_is_named(desk: Path) -> None:
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("needs the right to mount")
    (desk / "tmp").mkdir()
    mount = f"mount -t tmpfs -o size=64k tmpfs {desk}/tmp"
    done = ran(desk, "unshare", "-m", "sh", "-c", f'{mount}; exec "$@"', "sh", TMPDIR=str(desk / "tmp"))
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert line.startswith(f"{desk}/tmp: no room to write") and not (desk / "results").exists()
