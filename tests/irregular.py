"""What may be in the place of a file and is none."""

import os
import shutil
import socket
from pathlib import Path

IRREGULAR = ("pipe", "socket", "link to a device", "link to a pipe", "link to itself", "folder")


def put(path: Path, kind: str) -> Path:
    """Put something in place of a file; return its path."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as bound:
                folder = os.open(path.parent, os.O_RDONLY)  # the paths of sockets are short
                bound.bind(f"/proc/self/fd/{folder}/{path.name}")
                os.close(folder)
        case "link to a device":
            path.symlink_to("/dev/zero")
        case "link to a pipe":
            other = path.with_name(f"{path.name}.pipe")
            other.unlink(missing_ok=True)
            os.mkfifo(other)
            path.symlink_to(other.name)
        case "link to itself":
            path.symlink_to(path.name)
        case _:
            path.mkdir()
    return path
