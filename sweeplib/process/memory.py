"""How much memory processes get here: of the machine, of the container or job around them, of each alone."""

import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")
OF_A_PROCESS = (resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_RSS)


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


def _limits() -> Iterator[int]:
    """Yield the limits of this process's control groups, of version 1 and 2, and of those above them."""
    for line in _text(OWN_GROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        group = Path(path.strip("/"))
        for above in (group, *group.parents):
            if not controllers:
                yield from _numbers(GROUPS / above, ("memory.max", "memory.high"))
            elif "memory" in controllers.split(","):
                yield from _numbers(GROUPS / "memory" / above, ("memory.limit_in_bytes",))


def _numbers(folder: Path, names: tuple[str, ...]) -> Iterator[int]:
    for name in names:
        with suppress(ValueError):  # "max", or no such file
            yield int(_text(folder / name))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
