"""One version of a dataset as a zarr store, whatever its writer does meanwhile."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from zarr.core.buffer import default_buffer_prototype
from zarr.storage import LocalStore

from sweeplib.storage.damage import damaged, lost
from sweeplib.storage.manifest import MANIFEST, is_like, manifest_of
from sweeplib.storage.versions import name_of, places


class VersionStore(LocalStore):
    """The version of a dataset that is present when the store is made.

    Every file that is read is compared with the entry of that version's manifest. If it is of another version by
    now, it is read from `datasets/`. DamageError, with the advice `remedy`, for a file that is damaged or lost.
    """

    def __init__(self, root: Path, remedy: str) -> None:
        super().__init__(root, read_only=True)
        self.remedy = remedy
        if (manifest := manifest_of(root)) is None:
            raise lost(root / MANIFEST, remedy)
        manifest.check_sizes(remedy)
        self.entries, self.version = manifest.files, manifest.digest

    def with_read_only(self, read_only: bool = False) -> "VersionStore":
        """Return the store; it can only be read."""
        return self

    async def get(self, key: str, *args: Any, **kwargs: Any) -> Any:
        """Return the bytes of a file, None if there is no file."""
        return self._checked(key, await super().get(key, *args, **kwargs))

    def get_sync(self, key: str, **kwargs: Any) -> Any:
        """Return the bytes of a file, None if there is no file."""
        return self._checked(key, super().get_sync(key, **kwargs))

    def _checked(self, key: str, found: Any) -> Any:
        if key not in self.entries:
            return found
        if found is not None and is_like(self.entries[key], key, found.to_bytes()):
            return found
        for folder in places(self.root, self.version):
            with suppress(OSError):
                content = (folder / key).read_bytes()
                if is_like(self.entries[key], key, content):
                    return default_buffer_prototype().buffer.from_bytes(content)
        if found is None or name_of(self.root) != self.version:
            raise lost(self.root / key, self.remedy)
        raise damaged(self.root / key, self.remedy)
