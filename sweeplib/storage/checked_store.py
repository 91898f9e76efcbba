"""Zarr chunks with a checksum; a chunk that does not match its checksum is refused with its file name."""

import asyncio
from pathlib import Path
from typing import Any

from zarr.codecs import Crc32cCodec, ZstdCodec
from zarr.storage import LocalStore

from sweeplib.storage.damage import damaged
from sweeplib.storage.files import is_chunk, is_intact, write_bytes

COMPRESSORS = (ZstdCodec(level=0), Crc32cCodec())
"""The compressors of all arrays: zarr's default, then the checksum of the compressed bytes."""


class CheckedStore(LocalStore):
    """A folder of zarr arrays written with `COMPRESSORS` that raises DamageError for a chunk with a wrong checksum.

    zarr checks the checksum too, but does not name the file. `remedy` is the advice in the error. Files that are
    written survive a power cut.
    """

    def __init__(self, root: Path, *, read_only: bool = False, remedy: str) -> None:
        super().__init__(root, read_only=read_only)
        self.remedy = remedy

    def with_read_only(self, read_only: bool = False) -> "CheckedStore":
        """Return the same folder as a store that is read only or not."""
        return type(self)(self.root, read_only=read_only, remedy=self.remedy)

    async def get(self, key: str, *args: Any, **kwargs: Any) -> Any:
        """Return the bytes of a file, None if there is no file."""
        return self._checked(key, await super().get(key, *args, **kwargs))

    def get_sync(self, key: str, **kwargs: Any) -> Any:
        """Return the bytes of a file, None if there is no file."""
        return self._checked(key, super().get_sync(key, **kwargs))

    async def set(self, key: str, value: Any) -> None:
        """Write a file."""
        await asyncio.to_thread(self.set_sync, key, value)

    def set_sync(self, key: str, value: Any) -> None:
        """Write a file."""
        self._check_writable()
        write_bytes(self.root / key, value.as_numpy_array())

    def _checked(self, key: str, found: Any) -> Any:
        if is_chunk(key) and found is not None and not is_intact(found.as_numpy_array()):
            raise damaged(self.root / key, self.remedy)
        return found
