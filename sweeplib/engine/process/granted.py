"""What this process and its children may take of the machine: a part of it in a container or a batch job.

Linux limits processes by control groups, one within another; each kind of limit has a controller, "cpu" or "memory".
"""

import math
import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from sweeplib.engine.files.regular_files import file_text

GROUPS = Path("/sys/fs/cgroup")
"""The folder of all control groups of Linux, with a folder for each and files of its limits."""
OWN_GROUPS = Path("/proc/self/cgroup")
"""The control groups of this process: lines NUMBER:CONTROLLERS:PATH, in version 2 without controllers."""
OF_A_PROCESS = (resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_RSS)
"""The limits of `ulimit` on the memory of a process."""


def granted_memory() -> int:
    """Return the bytes that this process and its children may take together.

    That is the machine's memory, or the smallest limit of the control groups that they are in, as containers and batch
    jobs set it.
    """
    return min([int(psutil.virtual_memory().total), *_limits()])


def memory_of_a_process() -> int | None:
    """Return the bytes that each process may take, as `ulimit` sets them; None if there is no limit."""
    limits = [resource.getrlimit(kind)[0] for kind in OF_A_PROCESS]
    return min((limit for limit in limits if limit != resource.RLIM_INFINITY), default=None)


def granted_processors() -> int:
    """Return how many processors this process and its children may use together, at least 1.

    That is the smaller of the number of those on which it may run and the smallest quota of its control groups.
    """
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = []
    for folder, version in _groups("cpu"):
        names = ("cpu.max",) if version == 2 else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        with suppress(ValueError):  # "max", or no such file
            quota, period = map(int, " ".join(_text(folder / name) for name in names).split())
            if quota > 0:  # -1: none
                quotas.append(math.ceil(quota / period))
    return min([available, *quotas])


def _limits() -> Iterator[int]:
    """Yield the limits of memory of this process's control groups, and of those above them."""
    for folder, version in _groups("memory"):
        for name in ("memory.max", "memory.high") if version == 2 else ("memory.limit_in_bytes",):
            with suppress(ValueError):  # "max", or no such file
                yield int(_text(folder / name))


def _groups(controller: str) -> Iterator[tuple[Path, int]]:
    """Yield the folder, and the version, of each of this process's control groups for "cpu" or "memory", and above."""
    for line in _text(OWN_GROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        group = Path(path.strip("/"))
        for above in (group, *group.parents):
            if not controllers:
                yield GROUPS / above, 2
            elif controller in controllers.split(","):
                yield GROUPS / controller / above, 1


def _text(path: Path) -> str:
    """Return the text of a file, "" if it cannot be read."""
    try:
        return file_text(path)
    except OSError:
        return ""
