"""Chunks that carry their checksum, and are refused by name when it does not match."""

from pathlib import Path
from typing import Any

import google_crc32c
from zarr.codecs import Crc32cCodec, ZstdCodec
from zarr.storage import LocalStore

from sweeplib.storage.damage import damaged, lost

COMPRESSORS = (ZstdCodec(level=0), Crc32cCodec())
"""What all arrays are compressed with: zarr's default, then the checksum of what is on disk."""


class CheckedStore(LocalStore):
    """A folder of zarr arrays made with `COMPRESSORS`, that raises DamageError for a chunk unlike its checksum.

    zarr checks it too, but does not say of which file. `remedy` is what the error tells to do. With `whole`, all chunks
    were written, and one that is not there is an error: zarr would take it for fill values.
    """

    def __init__(self, root: Path, *, read_only: bool = False, remedy: str, whole: bool = False) -> None:
        super().__init__(root, read_only=read_only)
        self.remedy = remedy
        self.whole = whole

    def with_read_only(self, read_only: bool = False) -> "CheckedStore":
        """The same folder, to be read only or not."""
        return type(self)(self.root, read_only=read_only, remedy=self.remedy, whole=self.whole)

    async def get(self, key: str, *args: Any, **kwargs: Any) -> Any:
        """The bytes of a file, None where there is none."""
        return self._checked(key, await super().get(key, *args, **kwargs))

    def get_sync(self, key: str, **kwargs: Any) -> Any:
        """The bytes of a file, None where there is none."""
        return self._checked(key, super().get_sync(key, **kwargs))

    def _checked(self, key: str, found: Any) -> Any:
        if _is_chunk(key):
            if found is None and self.whole:
                raise lost(self.root / key, self.remedy)
            if found is not None and not is_intact(found.as_numpy_array()):
                raise damaged(self.root / key, self.remedy)
        return found


def is_intact(chunk: Any) -> bool:
    """Whether the bytes of a chunk end in the checksum of those before."""
    return len(chunk) > 4 and google_crc32c.value(chunk[:-4]) == int.from_bytes(bytes(chunk[-4:]), "little")


def _is_chunk(key: str) -> bool:
    """Whether a key is one of a chunk, `<array>/c/0/1`, and none of metadata, as which .zarray is asked for, too."""
    *folders, name = key.split("/")
    return name != "zarr.json" and not name.startswith(".") and "c" in (*folders, name)
