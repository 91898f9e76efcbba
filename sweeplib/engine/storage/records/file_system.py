"""What the file system of a results folder cannot do: found by trying, replaced where that is safe, else refused."""

import fcntl
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from sweeplib.engine.storage.records.files import partial, remove
from sweeplib.errors import InputError

LOCKS = "file locks"
"""The need without which two writers could not be told apart."""
OTHER_FOLDER = "another folder with --results; or a mount that has it, such as NFS with lockd, Lustre with `-o flock`"


def examine(directory: Path) -> None:
    """Try in a sweep's folder what its files need; a line on standard error names what is replaced.

    InputError, which names the file system, if it lacks an operation that nothing can replace.
    """
    directory.mkdir(parents=True, exist_ok=True)
    trial = partial(directory / "trial")
    trial.mkdir()
    try:
        for need, attempt in _NEEDED.items():
            if (error := _failure(attempt, trial)) is not None:
                raise lack_of(directory, need, error)
        replaced = [how for attempt, how in _REPLACED.items() if _failure(attempt, trial) is not None]
        replaced += [BETWEEN_HOSTS] * _has_local_locks(directory)
    finally:
        remove(trial)
    if replaced:
        sys.stderr.write(
            f"{directory}: the file system here ({_kind(directory)}) has no {', and no '.join(replaced)}\n"
        )


def lack_of(directory: Path, need: str, error: OSError) -> InputError:
    """Return the error for a folder whose file system lacks a `need` that nothing can replace, such as LOCKS."""
    problem = f"the file system here ({_kind(directory)}) has no {need} ({error.strerror})"
    return InputError(problem, file=directory, expected=OTHER_FOLDER)


def _failure(attempt: Callable[[Path], None], trial: Path) -> OSError | None:
    """Return the error of an attempt in the folder `trial`, None if it succeeds."""
    try:
        attempt(trial)
    except OSError as error:
        return error
    return None


def _lock_file(trial: Path) -> None:
    with (trial / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _append_twice(trial: Path) -> None:
    """Append lines to a file, as to a journal."""
    for _ in range(2):
        with (trial / "lines").open("a") as file:
            file.write("line\n")


def _rename_folder(trial: Path) -> None:
    (trial / "new").mkdir()
    (trial / "new").rename(trial / "folder")


def _make_hard_link(trial: Path) -> None:
    (trial / "link").hardlink_to(trial / "lines")


def _fsync_folder(trial: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    descriptor = os.open(trial, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_NEEDED: dict[str, Callable[[Path], None]] = {
    LOCKS: _lock_file,
    "files to append to": _append_twice,
    "renaming of folders": _rename_folder,
}
"""What two writers, a journal and a new dataset need, in words, each with a function that tries it in a folder."""
# in the order of dicts: the link is to the file to which a need before has appended
_REPLACED: dict[Callable[[Path], None], str] = {
    _make_hard_link: "hard links: equal parts of two versions of a dataset are stored twice",
    _fsync_folder: "fsync of folders: a power cut may damage the last blocks, which `sweeplib verify` finds",
}
"""What is done in another way where it fails, each with the line that says what follows."""


BETWEEN_HOSTS = "locks between hosts: commands on other hosts are known by their signs of life, after some seconds"
"""The same for locks, which are not tried: whether they hold between hosts is seen by the type of the file system."""
_OF_NFS = {"nolock", "local_lock=all", "local_lock=flock"}
_LOCAL = {
    "nfs": _OF_NFS,
    "nfs4": _OF_NFS,
    "cifs": {"nobrl"},
    "smb3": {"nobrl"},
    "lustre": {"localflock"},
}
"""By the type of a file system, the options with which each host has locks of its own."""
_ALWAYS_LOCAL = {"9p", "virtiofs", "vboxsf", "fuse.sshfs", "fuse.rclone", "fuse.gcsfuse", "fuse.s3fs"}
"""The file systems of other machines on which each host has locks of its own, whatever the options."""


def _has_local_locks(directory: Path) -> bool:
    """Return whether locks exclude only processes of one host, by what the system says of the file system."""
    mount = _mount(directory)
    options = set(mount.opts.split(",")) if mount else set()
    return mount is not None and (mount.fstype in _ALWAYS_LOCAL or bool(options & _LOCAL.get(mount.fstype, set())))


def _kind(directory: Path) -> str:
    """Return the type and the place of the file system of a folder."""
    mount = _mount(directory)
    return f"{mount.fstype} at {mount.mountpoint}" if mount else "of unknown type"


def _mount(directory: Path) -> Any:
    """Return psutil's entry of the mount in which a folder lies, the innermost one; None if the system lists none."""
    folders = {directory.resolve(), *directory.resolve().parents}
    mounts = [mount for mount in psutil.disk_partitions(all=True) if Path(mount.mountpoint) in folders]
    # of several at one place, such as of autofs and what it mounts, the last one hides the others
    return max(reversed(mounts), key=lambda mount: len(mount.mountpoint), default=None)
