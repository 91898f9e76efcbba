"""Groups of cases whose arrays have the same lengths along dimensions of their own: their names, such as p4_k1."""

import re
from collections.abc import Mapping

GROUP = re.compile(r"[a-z]+\d+(_[a-z]+\d+)*")
"""The names of groups."""
_SIZE = re.compile(r"([a-z]+)(\d+)")


def group_name(sizes: Mapping[str, int]) -> str:
    """Return the name of the group with these sizes, `all` where the arrays of all cases have the same lengths."""
    return "_".join(f"{name}{size}" for name, size in sizes.items()) or "all"


def group_sizes(name: str) -> dict[str, int]:
    """Return the sizes of a group from its name; {} for a name that is no group's, such as `all`."""
    return {key: int(size) for key, size in _SIZE.findall(name)} if GROUP.fullmatch(name) else {}
