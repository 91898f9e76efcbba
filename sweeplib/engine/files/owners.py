"""Who can change a file: this user and root alone, or others too."""

import grp
import os
import pwd
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path

BY_GROUP, BY_ALL = "users of its group may write there", "all users may write there"
"""The reasons why others than its owner may write in a file or folder."""


def others_in(path: Path) -> str | None:
    """Return why others than this user and root may have written a file, or in a folder; None if nobody else can."""
    state = path.stat()
    if state.st_uid not in (os.geteuid(), 0):
        return f"it belongs to {_user(state.st_uid)}"
    return _others_by_mode(state)


def is_private(path: Path) -> bool:
    """Return whether a file or a folder is this user's, and no other user but root may write there."""
    with suppress(OSError):
        state = path.stat()
        return state.st_uid == os.geteuid() and _others_by_mode(state) is None
    return False


def private_folder(within: Path) -> Path | None:
    """Return a folder in which only this user can write: `within`, or one in it; None if there can be none.

    Where others may write, as in /tmp, the folder has this user's number in its name, nobody else can look into it, and
    it is not used if others made it.
    """
    try:
        if not within.exists():
            within.mkdir(mode=0o700, parents=True)
        if is_private(within) and os.access(within, os.W_OK):
            return within
        private = within / f"sweeplib-{os.geteuid()}"
        with suppress(FileExistsError):
            private.mkdir(mode=0o700)
    except OSError:
        return None
    # not `stat`: a link that somebody else made in the place of the folder must not be followed
    state, above = private.lstat(), within.stat().st_mode
    closed = stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid() and not state.st_mode & 0o077
    # without the sticky bit others may rename the folder, and put theirs in its place
    return private if closed and (above & stat.S_ISVTX or not above & stat.S_IWOTH) else None


def _others_by_mode(state: os.stat_result) -> str | None:
    """Return why others than its owner may write in a file or folder, by its permissions; None if nobody else may."""
    if state.st_mode & stat.S_IWOTH:
        return BY_ALL
    return BY_GROUP if state.st_mode & stat.S_IWGRP and not _is_of_one(state.st_gid) else None


@cache
def _is_of_one(group: int) -> bool:
    """Return whether a group, by its number, is this user's alone, as many systems have one a user, or root's."""
    with suppress(KeyError):
        name, members = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(group)
        return group == 0 or (members.gr_name == name and set(members.gr_mem) <= {name})
    return group == 0


def _user(number: int) -> str:
    """Return the name of a user, or the number in words if the system knows no name."""
    with suppress(KeyError):
        return pwd.getpwuid(number).pw_name
    return f"the user {number}"
