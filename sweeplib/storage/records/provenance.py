"""The origin of a result: versions of libraries, the git commit, the processor."""

import importlib.metadata
import platform
import subprocess
from functools import cache
from pathlib import Path

import sweeplib
from sweeplib.regular_files import file_text

PACKAGE = Path(__file__).resolve().parents[2]
LIBRARIES = ("numpy", "scipy", "numba", "xarray", "zarr", "dask", "distributed")


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that a result depends on."""
    packages = {"sweeplib": sweeplib.__version__, "python": platform.python_version()}
    return packages | {name: _version(name) for name in LIBRARIES}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


@cache
def git_commit() -> str | None:
    """Return the commit of sweeplib's own checkout, with "-dirty" if files differ.

    Outside a checkout it is that of which the installed wheel was built, None if it was built elsewhere.
    """
    if _git("ls-files", "--error-unmatch", "__init__.py") is None:
        built = PACKAGE / "commit.txt"
        return file_text(built) if built.exists() else None
    dirty = _git("status", "--porcelain", "--untracked-files=no", ".")
    commit = _git("rev-parse", "HEAD")
    return f"{commit}-dirty" if dirty else commit


def _git(*arguments: str) -> str | None:
    try:
        command = ["git", "-C", str(PACKAGE), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@cache
def cpu_model() -> str:
    """Return the type of this machine's processor; another type may change the last bits of a result."""
    try:
        lines = file_text("/proc/cpuinfo").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
