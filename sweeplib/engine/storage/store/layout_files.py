"""Files of the run store: chunks with the bytes that zarr gives them, in a tenth of its time, and sealed metadata.

A zarr.json contains a checksum of itself among its attributes, the part of its format that accepts any key.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
from numcodecs import VLenUTF8, Zstd
from zarr.codecs import Crc32cCodec, ZstdCodec

from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.engine.storage.records.files import (
    CHECKSUM,
    DamageError,
    damaged,
    digest,
    is_intact,
    is_partial,
    lost,
    write_files,
)

COMPRESSORS = (ZstdCodec(level=0), Crc32cCodec())
"""The compressors of all arrays: zarr's default, then the checksum of the compressed bytes."""
_OF_LAYOUT = re.compile(r"(\w+/)?zarr\.json|\w+/c(/\d+)*")
_ATTRIBUTES = {"rows", "block_size", "cost_class", "shared", "variables"}
_ZSTD, _TEXTS = Zstd(level=0), VLenUTF8()


def chunk_bytes(values: np.ndarray) -> bytes:
    """Return the bytes of a chunk with these values, numbers or strings, as `COMPRESSORS` make them."""
    is_text = values.dtype.kind in "OTU"
    raw = _TEXTS.encode(values.astype(object)) if is_text else np.ascontiguousarray(values).tobytes()
    packed = bytes(_ZSTD.encode(raw))
    return packed + int(google_crc32c.value(packed)).to_bytes(4, "little")


def read_chunk(path: Path, dtype: np.dtype, shape: tuple[int, ...], remedy: str) -> np.ndarray | None:
    """Return the values of a chunk, strings as objects; None if there is no file.

    DamageError for a wrong checksum, or the size of another array.
    """
    try:
        content = file_bytes(path)
    except FileNotFoundError:
        return None
    if not is_intact(content):
        raise damaged(path, remedy)
    raw = _ZSTD.decode(memoryview(content)[:-4])
    try:
        values: np.ndarray = _TEXTS.decode(raw) if dtype.kind in "OT" else np.frombuffer(raw, dtype)
        return values.reshape(shape)
    except ValueError:  # of another array
        raise damaged(path, remedy) from None


def write_metadata(contents: Mapping[Path, dict[str, Any]]) -> None:
    """Write each zarr.json with its content and checksum, in one rename."""
    write_files({path: _with_checksum(content).encode() for path, content in contents.items()})


def read_metadata(path: Path, remedy: str) -> dict[str, Any]:
    """Return the content of a zarr.json without its checksum. DamageError if any bit of the file has changed."""
    try:
        text = file_bytes(path).decode("utf-8")
        content: dict[str, Any] = json.loads(text)
        del content["attributes"][CHECKSUM]
        intact = _with_checksum(content) == text
    except FileNotFoundError:
        raise lost(path, remedy) from None
    except (ValueError, TypeError, KeyError, RecursionError):
        intact = False
    if not intact:
        raise damaged(path, remedy)
    return content


def layout_attributes(path: Path, remedy: str) -> dict[str, Any]:
    """Return the attributes in the zarr.json of a layout. DamageError if any bit has changed, or it is of no layout."""
    attributes: dict[str, Any] = read_metadata(path, remedy)["attributes"]
    if not attributes.keys() >= _ATTRIBUTES:
        raise damaged(path, remedy)
    return attributes


def array_metadata(array: Path, dims: list[str] | None, remedy: str) -> dict[str, Any]:
    """Return the content of the zarr.json of an array; `dims` of a variable, None for the index and the status.

    DamageError if any bit has changed, or it is of another array.
    """
    path = array / "zarr.json"
    metadata = read_metadata(path, remedy)
    others = dims if dims is not None else ["word"] if array.name == "case_id" else []
    if metadata.get("dimension_names") != ["case", *others]:
        raise damaged(path, remedy)
    return metadata


def intact_metadata(path: Path) -> dict[str, Any] | None:
    """Return the content of a zarr.json, None if it is damaged or lost, or something else than a file is there."""
    with suppress(DamageError, OSError):
        return read_metadata(path, "")
    return None


def _with_checksum(content: dict[str, Any]) -> str:
    checksum = digest(_text(content).encode())
    return _text(content | {"attributes": content["attributes"] | {CHECKSUM: checksum}})


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, sort_keys=True) + "\n"


def is_of_layout(name: str) -> bool:
    """Return whether a path below the folder of a layout is that of one of its files."""
    return _OF_LAYOUT.fullmatch(name) is not None or is_partial(Path(name))
