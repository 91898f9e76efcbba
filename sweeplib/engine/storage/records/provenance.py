"""The origin of a result: versions of libraries, the git commit, the processor and what makes its machine code."""

import importlib.metadata
import platform
import subprocess
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path

import sweeplib
from sweeplib.engine.files.regular_files import file_text

PACKAGE = Path(__file__).resolve().parents[3]
"""The folder of the package sweeplib."""
CREDITS = "creator_name", "license"
"""The attributes that name authors and licence, if the config does; the names are those of ACDD, a convention."""
ATTRIBUTES = ("Conventions", "config", "digest", "fixed", "git_commit", "processors", "title", "versions", *CREDITS)
"""The attributes of a dataset other than its constants; constants cannot have these names."""
NUMBA = " (numba "
"""What stands between the type of a processor and the release of numba in the name of a machine."""
LIBRARIES = ("numpy", "scipy", "numba", "xarray", "zarr", "dask", "distributed")
"""The packages whose versions a result records."""


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that a result depends on."""
    packages = {"sweeplib": version(), "python": platform.python_version()}
    return packages | {name: _version(name) for name in LIBRARIES}


def _version(name: str) -> str:
    """Return the version of an installed package, "unknown" without one."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


@cache
def version() -> str:
    """Return the version of sweeplib that runs: a release's, or with the commit: `0.4.0`, `0.4.0+1a2b3c4d5e.dirty`."""
    commit, is_release = _checkout()
    if is_release:
        return sweeplib.__version__
    number, _, dirty = (commit or "unknown").partition("-")
    return f"{sweeplib.__version__}+{number[:10]}{dirty and f'.{dirty}'}"


def git_commit() -> str | None:
    """Return the commit of sweeplib's own checkout, with "-dirty" if files differ.

    Outside a checkout it is that of which the installed wheel was built, None if it was built elsewhere.
    """
    return _checkout()[0]


@cache
def _checkout() -> tuple[str | None, bool]:
    """Return the commit, as in `git_commit`, and whether it is that of the release: the tag vVERSION names it.

    An installed wheel has both in `commit.txt`: the commit, and the word "release".
    """
    if _git("ls-files", "--error-unmatch", "__init__.py") is None:
        built = PACKAGE / "commit.txt"
        commit, *words = file_text(built).split() if built.exists() else [None]
        return commit, "release" in words
    commit = _git("rev-parse", "HEAD")
    if _git("status", "--porcelain", "--untracked-files=no", "."):
        return f"{commit}-dirty", False
    return commit, f"v{sweeplib.__version__}" in (_git("tag", "--points-at", "HEAD") or "").split()


def home_page() -> str:
    """Return the address of the source of sweeplib, as the installed package has it; empty if it has none."""
    try:
        links = importlib.metadata.metadata("sweeplib").get_all("Project-URL") or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    return next((link.partition(", ")[2] for link in links if link.startswith("Repository,")), "")


def _git(*arguments: str) -> str | None:
    """Return what git says in the folder of the package; None if it fails, or there is no git."""
    try:
        command = ["git", "-C", str(PACKAGE), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@cache
def cpu_model() -> str:
    """Return the type of this machine's processor: a name, or the numbers that kernels of ARM give."""
    try:
        lines = file_text("/proc/cpuinfo").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    entries = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in reversed(lines))}
    numbers = [entries[name] for name in ("CPU implementer", "CPU part") if name in entries]
    return entries.get("model name") or " ".join([platform.machine(), *numbers])


@cache
def machine() -> str:
    """Return the processor's type and numba's version, on which the last bits of results depend: "CPU (numba 0.62)"."""
    return f"{cpu_model()}{NUMBA}{_version('numba')})"


def are_one(machines: Iterable[str]) -> bool:
    """Return whether a case must have the same bits on some machines: their processors are of a type, and their numbas.

    Earlier versions of sweeplib recorded the processor alone, which says nothing of numba.
    """
    names = set(machines)
    return len(names) == 1 and all(NUMBA in name for name in names)


def is_like_here(machines: Collection[str]) -> bool:
    """Return whether results of some machines have the bits that they would have here; so if none is known."""
    return are_one([machine(), *machines])
