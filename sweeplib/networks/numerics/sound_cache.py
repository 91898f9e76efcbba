"""Cached machine code with checksums: what is damaged is compiled again, with a line, and never run.

numba trusts what it finds: an empty index, as a crash or a copy that was cut leaves it, raises EOFError at each load,
and a flipped bit is run. Here files of sweeplib's kernels end with a checksum, which numba does not read; those of
other functions are read as numba reads them. A kernel's file without a checksum is somebody else's: it is not read.
"""

import hashlib
import os
import pickle
import re
import sys
from pathlib import Path
from typing import Any

from numba.core.caching import IndexDataCacheFile

from sweeplib.engine.files.regular_files import file_bytes

MARK = b"sweeplib"
"""The last bytes of a file with a checksum."""
_OF_KERNEL = re.compile(r"__[0-9a-f]{16}-\d+\.")
"""What the name of a kernel's file has: the digest by which `compiled` makes it unique."""
_messages: list[str] = []
"""The line that this process has written, if it has written one."""


class DamageError(Exception):
    """The bytes of a file are not those that were written."""


def keep_checksums() -> None:
    """Let the files of numba's cache that have kernels get checksums, which are compared when they are read.

    It replaces three methods of numba's class for the files of a function, `_numbas`, once in a process.
    """
    if IndexDataCacheFile._load_index is not _load_index:
        for method in (_load_index, _load_data, _dump):
            setattr(IndexDataCacheFile, method.__name__, method)


def _load_index(file: Any) -> dict[Any, str]:
    """Return the names of the data files by signature; {} if the index is absent, damaged or of other sources.

    file : numba's object for the cached files of a function.
    """
    path = Path(file._index_path)
    try:
        return dict(_numbas["_load_index"](file)) if _is_whole(path, file) else {}
    # a disk that fails is no damage of this file
    except OSError:
        raise
    except Exception:  # whatever a damaged pickle asks for
        return _forgotten(path)


def _load_data(file: Any, name: str) -> Any:
    """Return what a data file has, by its name; FileNotFoundError, upon which numba compiles, if it is damaged."""
    path = Path(file._cache_path, name)
    try:
        if _is_whole(path, file):
            return _numbas["_load_data"](file, name)
    except OSError:
        raise
    except Exception:
        _forgotten(path)
    raise FileNotFoundError(path)


def _dump(file: Any, content: Any) -> bytes:
    """Return the bytes that numba writes for some content, with a checksum if the file is a kernel's."""
    pickled: bytes = _numbas["_dump"](file, content)
    return pickled + _checksum(pickled) if _OF_KERNEL.search(file._index_name) else pickled


_numbas = {name: vars(IndexDataCacheFile)[name] for name in ("_load_index", "_load_data", "_dump")}
"""The methods of numba that are replaced, and called within."""


def _is_whole(path: Path, file: Any) -> bool:
    """Return whether the checksum of a kernel's file is right; a file with another, or none, is removed."""
    if not _OF_KERNEL.search(file._index_name) or not path.is_file():
        return True
    content = file_bytes(path)
    # into an index numba writes its version first, beside what `_dump` returns
    start = len(pickle.dumps(file._version, protocol=-1)) if path.name == file._index_name else 0
    pickled = content[start : -len(_checksum(b""))]
    if content[start:] == pickled + _checksum(pickled):
        return True
    _forgotten(path)
    return False


def _checksum(content: bytes) -> bytes:
    """Return the end of a file with this content; pickle reads no further than its own end."""
    return hashlib.blake2b(content, digest_size=16).digest() + MARK


def _forgotten(path: Path) -> dict[Any, str]:
    """Remove a damaged file, with a line on standard error for the first one; return an empty index.

    OSError, which says that the file is damaged, if it cannot be removed.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(error.errno, f"{os.strerror(error.errno or 0)}, and it is damaged", str(path)) from None
    if not _messages and sys.stderr is not None:
        _messages.append(f"sweeplib: {path}: damaged machine code in the cache; it is compiled again\n")
        sys.stderr.write(_messages[0])
    return {}
