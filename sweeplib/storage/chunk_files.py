"""Chunks of the run store as files, with the bytes that zarr gives them: a tenth of the time of a zarr array each."""

import re
from pathlib import Path

import google_crc32c
import numpy as np
from numcodecs import VLenUTF8, Zstd

from sweeplib.storage.damage import damaged
from sweeplib.storage.files import is_intact, is_partial, write_bytes

_OF_LAYOUT = re.compile(r"(\w+/)?zarr\.json|\w+/c(/\d+)*")
_ZSTD, _TEXTS = Zstd(level=0), VLenUTF8()


def encoded(values: np.ndarray) -> bytes:
    """Return the bytes of a chunk with these values, numbers or strings, as `checked_store.COMPRESSORS` makes them."""
    is_text = values.dtype.kind in "OTU"
    raw = _TEXTS.encode(values.astype(object)) if is_text else np.ascontiguousarray(values).tobytes()
    packed = bytes(_ZSTD.encode(raw))
    return packed + int(google_crc32c.value(packed)).to_bytes(4, "little")


def write_chunk(path: Path, values: np.ndarray) -> None:
    """Write a chunk in one rename, so that readers see the old or the new one; it survives a power cut."""
    write_bytes(path, encoded(values))


def read_chunk(path: Path, dtype: np.dtype, shape: tuple[int, ...], remedy: str) -> np.ndarray | None:
    """Return the values of a chunk, strings as objects; None if there is no file. DamageError for a wrong checksum."""
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        return None
    if not is_intact(found):
        raise damaged(path, remedy)
    raw = _ZSTD.decode(memoryview(found)[:-4])
    if dtype.kind in "OT":
        texts: np.ndarray = _TEXTS.decode(raw)
        return texts.reshape(shape)
    return np.frombuffer(raw, dtype).reshape(shape)


def is_of_layout(name: str) -> bool:
    """Return whether a path below the folder of a layout is that of one of its files."""
    return _OF_LAYOUT.fullmatch(name) is not None or is_partial(Path(name))
