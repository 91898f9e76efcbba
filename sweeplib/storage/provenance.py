"""The origin of a result: digests of sources, versions of libraries, the git commit, the processor."""

import hashlib
import importlib.metadata
import platform
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import sweeplib
from sweeplib.code.plugins import plugins_digest
from sweeplib.code.sources import PACKAGE_FILES

PACKAGE = Path(__file__).resolve().parent.parent
LIBRARIES = ("numpy", "scipy", "numba", "xarray", "zarr", "dask", "distributed")


STAGE_FLOORS = {
    "simulate": ("storage",),
    "analyse": ("analysis", "theory"),
    "figure": ("figures", "theory"),
    "report": ("report",),
}
"""The subpackages that a stage of the workflow calls, beside those on which the identities of cases depend."""


def stage_code(stage: str, plugins: Sequence[str]) -> list[str]:
    """Return the digests of subpackages of the library and of the code of loaded plugins that a stage calls."""
    return [floors_digest(*STAGE_FLOORS[stage]), plugins_digest(plugins, stage)]


@cache
def floors_digest(*floors: str) -> str:
    """Return a hash of the source files of some subpackages of sweeplib, such as "maths" or "simulation".

    It is that of the files as this process first saw them. ValueError for an unknown subpackage.
    """
    digest = hashlib.blake2b(digest_size=12)
    for floor in sorted(set(floors)):
        for path in _sources(floor):
            digest.update(f"{path.relative_to(PACKAGE)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _sources(floor: str) -> list[Path]:
    folder, module = PACKAGE / floor, PACKAGE / f"{floor}.py"
    if module.exists():
        return [module]
    if not folder.is_dir():
        raise ValueError(f"sweeplib has no floor {floor!r}")
    return sorted(path for path in folder.rglob("*") if path.suffix in PACKAGE_FILES)


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that a result depends on."""
    own = {"sweeplib": sweeplib.__version__, "python": platform.python_version()}
    return own | {name: _version(name) for name in LIBRARIES}


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
        return built.read_text(encoding="utf-8") if built.exists() else None
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
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
