"""Results and caches on file systems that lack an operation, or that cannot be written."""

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest

from sweeplib import InputError
from sweeplib.config import load
from sweeplib.engine.execution.run import run_sweep
from sweeplib.engine.process.environment import caches_in
from sweeplib.engine.process.troubles import in_one_line
from sweeplib.engine.storage.dataset.folded_names import refuse_folded_names
from sweeplib.engine.storage.records.file_system import examine
from sweeplib.engine.storage.records.files import lost, read_json, write_json
from sweeplib.networks.numerics import cache


def lacking(number: int) -> Callable[..., None]:
    def fails(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fails


def test_a_file_system_that_can_do_all_is_not_mentioned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examine(tmp_path / "new")
    assert capsys.readouterr().err == ""
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_named(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fcntl.flock", lacking(number))
    with pytest.raises(InputError, match=r"the file system here \(\w+ at /.*\) has no file locks .*--results"):
        examine(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert "--results" in in_one_line(OSError(number, os.strerror(number)), tmp_path)


def test_what_can_be_replaced_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.link", lacking(errno.EPERM))
    monkeypatch.setattr("os.fsync", lacking(errno.EINVAL))
    examine(tmp_path)
    [line] = capsys.readouterr().err.splitlines()
    assert "no hard links" in line and "no fsync" in line and str(tmp_path) in line
    write_json(tmp_path / "new" / "file.json", {"number": 1})
    assert read_json(tmp_path / "new" / "file.json") == {"number": 1}
    monkeypatch.setattr("os.fsync", lacking(errno.EIO))
    with pytest.raises(OSError, match="Input/output"):
        write_json(tmp_path / "file.json", {})


def test_a_record_that_is_removed_while_it_is_read_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As that of a version of a dataset which another process replaces."""
    monkeypatch.setattr(Path, "exists", lambda _: True)
    assert read_json(tmp_path / "file.json") is None


@pytest.mark.parametrize(
    ("kind", "options", "is_said"),
    [
        ("nfs4", "rw,vers=4.2,local_lock=none", False),
        ("nfs", "rw,nolock,vers=3", True),
        ("nfs", "rw,local_lock=all", True),
        ("lustre", "rw,flock", False),
        ("lustre", "rw,localflock", True),
        ("cifs", "rw,nobrl", True),
        ("9p", "rw,trans=virtio", True),
        ("fuse.sshfs", "rw", True),
        ("ext4", "rw", False),
    ],
)
def test_locks_that_hold_on_one_host_only_are_said_once(
    kind: str,
    options: str,
    is_said: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # the last one at a place hides the others
    mounts = [SimpleNamespace(fstype=of, opts=said, mountpoint="/") for of, said in (("autofs", "rw"), (kind, options))]
    monkeypatch.setattr("psutil.disk_partitions", lambda **_: mounts)
    examine(tmp_path)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == is_said
    assert not is_said or f"({kind} at /) has no locks between hosts" in lines[0]


@pytest.fixture
def folding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let names that differ in case be one file, as on macOS."""

    def exists(path: Path) -> bool:
        return os.path.isdir(path.parent) and path.name.casefold() in map(str.casefold, os.listdir(path.parent))  # noqa: PTH112, PTH208

    monkeypatch.setattr(Path, "exists", exists)


TWO_NAMES = """
from sweeplib import simulator

@simulator(energy="J", Energy="1")
def heated(t: float, T: float):
    return {"energy": t * T, "Energy": t + T}
"""


@pytest.mark.parametrize(
    ("code", "name", "other"),
    [(TWO_NAMES, "energy", "Energy"), (TWO_NAMES.replace("Energy", "sum"), "t", "T")],
)
def test_names_that_are_one_file_here_are_refused_before_anything_runs(
    code: str, name: str, other: str, tmp_path: Path, folding: None
) -> None:
    """The array of T replaced that of t."""
    (tmp_path / "two.py").write_text(code)
    (tmp_path / "two.yaml").write_text("simulator: two.py\ngrid: {t: [1, 2], T: [1, 3]}\nfigures: []\n")
    sweep, results = load(tmp_path / "two.yaml"), tmp_path / "results" / "two"
    with pytest.raises(InputError, match=f"{results}: .* does not tell this name from {other}; got '{name}'; expected"):
        run_sweep(sweep, results, progress=False)
    assert not (tmp_path / "results").exists()


def test_names_that_differ_in_case_alone_are_two_files_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(TWO_NAMES)
    (tmp_path / "two.yaml").write_text("simulator: two.py\ngrid: {t: [1, 2], T: [1, 3]}\nfigures: []\n")
    sweep = load(tmp_path / "two.yaml")
    refuse_folded_names(sweep, tmp_path / "results" / "two")
    assert not (tmp_path / "results").exists()


def doubled(x: float) -> float:
    return 2 * x


@pytest.mark.parametrize("fails", ["place", "lock"])
def test_code_that_cannot_be_cached_is_kept_in_memory(
    fails: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cache, "_messages", [])
    if fails == "place":
        monkeypatch.setattr(numba.core.caching.CompileResultCacheImpl, "_locator_classes", [])
    else:
        monkeypatch.setattr("filelock.FileLock.acquire", lacking(errno.ENOLCK))
    functions = [cache.cached(partial(numba.njit, nogil=nogil), doubled) for nogil in (True, False)]
    assert capsys.readouterr().err == "", "nothing is compiled yet"
    assert [function(1.5) for function in functions] == [3.0, 3.0]
    [line] = capsys.readouterr().err.splitlines()
    assert "kept in memory" in line and "NUMBA_CACHE_DIR" in line


def test_caches_that_the_user_cannot_write_are_kept_in_a_private_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    caches_in(tmp_path / "results")
    assert capsys.readouterr().err == "" and not (tmp_path / "results").exists()
    (tmp_path / "file").touch()
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "shared"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    caches_in(tmp_path / "results")
    private = tmp_path / "shared" / f"sweeplib-{os.geteuid()}"
    assert f"caches are kept in {private}: " in capsys.readouterr().err
    assert os.environ["XDG_CACHE_HOME"] == str(private) and private.stat().st_mode & 0o777 == 0o700
    assert Path(os.environ["MPLCONFIGDIR"]).is_relative_to(private)
    private.chmod(0o777)  # whatever is in it may be anybody's
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "cache"))
    caches_in(tmp_path / "results")
    other = Path(os.environ["XDG_CACHE_HOME"])
    assert other != private and other.parent == private.parent and other.stat().st_mode & 0o777 == 0o700
    assert not (tmp_path / "results").exists()


def test_temporary_files_among_results_are_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise FileNotFoundError

    monkeypatch.setattr("tempfile.gettempdir", nowhere)
    monkeypatch.setenv("TMPDIR", "")
    instead = tmp_path / ".cache" / "tmp"
    instead.mkdir(parents=True)
    instead.chmod(0o777)
    with pytest.raises(InputError, match="all users may write there"):
        caches_in(tmp_path)


def test_machine_code_is_read_where_nobody_else_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file there is a pickle, which is executed as it is read."""
    beside, home, own = tmp_path / "source", tmp_path / "home", f"sweeplib-{os.geteuid()}"
    (beside / "__pycache__").mkdir(parents=True)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    assert cache._folder_of_code(beside) == ""
    (beside / "__pycache__").chmod(0o777)
    assert cache._folder_of_code(beside) == str(home / "sweeplib")
    home.chmod(0o1777)
    assert cache._folder_of_code(beside) == str(home / own / "sweeplib")
    assert (home / own).stat().st_mode & 0o777 == 0o700
    (home / own).chmod(0o777)
    assert cache._folder_of_code(beside) is None
    (home / own).rename(tmp_path / "mine")
    (home / own).symlink_to(tmp_path / "mine")
    assert cache._folder_of_code(beside) is None
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "given"))
    assert cache._folder_of_code(beside) == str(tmp_path / "given")
    (tmp_path / "given").chmod(0o1777)
    assert cache._folder_of_code(beside) == str(tmp_path / "given" / own)


def test_a_file_whose_folder_has_moved_is_not_to_be_deleted(tmp_path: Path) -> None:
    moved = str(lost(tmp_path / "gone" / "zarr.json", "compute it again"))
    assert moved.endswith("zarr.json: lost, its folder was moved or deleted; bring it back, or compute it again")
