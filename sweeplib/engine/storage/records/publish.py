"""The dataset of a sweep published at an address of fsspec, such as `s3://bucket/name.zarr`, for plain `xr.open_zarr`.

Object stores have no rename. While objects are written there is no root `zarr.json`, so that a reader finds no dataset
rather than parts of two; it is written last, with all metadata in it. `published.json` beside it has the digest of
each object: only those that changed are sent, and those of an interrupted command are sent again. It also has a key,
which the folder of results that published there has too: no other one replaces the dataset.
"""

import json
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.engine.storage.dataset.versions import present_folder
from sweeplib.engine.storage.records.files import DAMAGED, LOST, digest, is_below, lost, read_json, write_json
from sweeplib.engine.storage.records.locks import writer_lock
from sweeplib.engine.storage.records.manifest import MANIFEST, Manifest, digest_of, is_name_of_zarr, manifest_of
from sweeplib.errors import InputError, SweeplibError

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

    from sweeplib.engine.design.design import Design

MARKER = "published.json"
"""Its content: {"sweep": the name, "key", "complete": whether all was sent, "files": digests by name, "digest"}."""
BUCKETS = frozenset({"abfs", "abfss", "adl", "az", "gcs", "gs", "oci", "r2", "s3", "s3a"})
"""Protocols of stores of objects, without folders."""
FORGETFUL = "memory"
"""The protocol of a store that ends with the process."""
ROOT = "zarr.json"
"""The object without which a reader finds no dataset."""
REPEAT = "`sweeplib finalise CONFIG` writes the dataset again"
PATIENCE = 30.0
"""Seconds after which a store that does not answer counts as out of reach."""
Returned = TypeVar("Returned")


class PublishAddress:
    """The address at which a sweep's dataset is published, and its file system.

    files, path : fsspec's file system, and the path in it. name, directory : of the sweep, and of its results.
    """

    def __init__(self, address: str, name: str, directory: Path) -> None:
        """Open the file system of an address for the sweep of a name with its results in a directory.

        InputError if there is none, its package is missing, or it is in the directory itself.
        """
        from fsspec.core import url_to_fs

        self.address, self.name, self.directory = address, name, directory
        try:
            files_and_path: tuple[AbstractFileSystem, str] = url_to_fs(address, use_listings_cache=False)
        except ImportError as error:
            missing = f"{error}".splitlines()[0]
            remedy = "; install it with `pip install s3fs`" if address.startswith(("s3://", "s3a://")) else ""
            raise self._refusal(f"no package for this kind of address: {missing}{remedy}") from None
        except (ValueError, OSError) as error:
            raise self._refusal(str(error)) from None
        self.files, self.path = files_and_path[0], files_and_path[1].rstrip("/")
        results = directory.resolve()
        if "file" in self.files.protocol and results in (place := Path(self.path).resolve(), *place.parents):
            raise self._refusal("in the folder of the sweep's own results")

    def check(self) -> None:
        """Raise InputError unless the dataset can be written at the address, where a small file is written to try."""
        probe = f"{self.path}/.probe"

        def try_to_write() -> None:
            """Write a small file, and remove it."""
            self._make_folders([])
            self.files.pipe_file(probe, b"sweeplib")
            self.files.rm_file(probe)

        try:
            self._refuse_others(_with_time_limit(self._read_marker))
            _with_time_limit(try_to_write)
        except SweeplibError:
            raise
        except Exception as error:
            raise self._refusal(f"cannot be written: {_reason(error)}") from None

    def examined(self, version: str | None) -> tuple[int, dict[str, str]]:
        """Return how many objects were read at the address, and by name the problem of each that is not as it was sent.

        version : of the present dataset, None if it is not known; another one at the address is a problem.
        SweeplibError if the store fails, InputError if it has something else than the dataset of this sweep.
        """
        try:
            marker = _with_time_limit(self._read_marker)
            self._refuse_others(marker)
            if not marker:
                return 0, {MARKER: LOST}
            digests = {name: _with_time_limit(partial(self._digest_of, name)) for name in marker["files"]}
        except SweeplibError:
            raise
        except Exception as error:
            raise SweeplibError(f"cannot be read: {_reason(error)}") from error
        problems = {
            name: LOST if digests[name] is None else DAMAGED
            for name, sent in marker["files"].items()
            if digests[name] != sent
        }
        if not marker["complete"]:
            problems[MARKER] = "of a dataset that was not sent completely"
        elif version not in (None, _version(marker["files"])):
            problems[MARKER] = "of another version than the present dataset"
        return len(digests), problems

    def _digest_of(self, name: str) -> str | None:
        """Return the digest of an object, None if there is none."""
        try:
            return digest(self.files.cat_file(f"{self.path}/{name}"))
        except FileNotFoundError:
            return None

    def publish(self, dataset: Path, again: Collection[str] = ()) -> int:
        """Send the files of a dataset that are not at the address yet, and remove others; return the number sent.

        again : names of files that are sent in any case. SweeplibError if the store fails, InputError if it has the
        dataset of another sweep.
        """
        try:
            manifest = manifest_of(dataset)
            if manifest is None:
                raise lost(dataset / MANIFEST, REPEAT)
            return self._send_changed(manifest, again)
        except SweeplibError:
            raise
        except Exception as error:
            problem = f"{dataset} is written, and not published at {self.address}: {_reason(error)}"
            raise SweeplibError(f"{problem}; `sweeplib finalise CONFIG` sends the rest") from error

    def _send_changed(self, manifest: Manifest, again: Collection[str]) -> int:
        """Send what differs from what the marker says; return the number of files that were sent. `again` : as above.

        While files change there is no root, so that nobody opens a dataset of two versions: it is written last.
        """
        dataset, marker = manifest.folder, self._read_marker()
        wanted = {name: str(entry[1]) for name, entry in manifest.files.items()} | {
            MANIFEST: digest(file_bytes(manifest.path))
        }
        self._refuse_others(marker)
        remote = {name: content for name, content in marker["files"].items() if name not in again} if marker else {}
        if marker and marker["complete"] and remote == wanted:
            return 0
        changed = sorted(name for name, content in wanted.items() if remote.get(name) != content and name != ROOT)
        unchanged = {name: content for name, content in remote.items() if wanted.get(name) == content and name != ROOT}
        gone = sorted(remote.keys() - wanted.keys())
        replace(manifest, files={name: manifest.files[name] for name in (*changed, ROOT) if name != MANIFEST}).check(
            REPEAT
        )
        # the data are those of the store, and only how they are listed differs
        if marker and marker["complete"] and _version(remote) == manifest.digest:
            self.files.pipe_file(f"{self.path}/{MANIFEST}", file_bytes(manifest.path))
            self._write_marker(wanted, complete=True)
            return 1
        self._make_folders(changed)
        # files without a digest are sent, or removed, once more after an interrupt, as is the root, which has none
        self._write_marker(unchanged | dict.fromkeys((*gone, *changed), ""), complete=False)
        self._remove([ROOT] if marker else [])
        if changed:
            self.files.put([str(dataset / name) for name in changed], [f"{self.path}/{name}" for name in changed])
        self._remove(gone)
        self._refuse_others(self._read_marker())  # another folder of results may have begun meanwhile
        self.files.pipe_file(f"{self.path}/{ROOT}", file_bytes(dataset / ROOT))
        self._write_marker(wanted, complete=True)
        return len(changed) + 1

    def _make_folders(self, names: list[str]) -> None:
        """Make the folders of files, where there are folders; in an object store this might make a bucket."""
        if urlsplit(self.address).scheme not in BUCKETS:
            for folder in sorted({self.path, *(f"{self.path}/{name}".rpartition("/")[0] for name in names)}):
                self.files.makedirs(folder, exist_ok=True)

    def _remove(self, names: list[str]) -> None:
        """Remove the objects of these names that exist."""
        for name in names:
            if self.files.exists(f"{self.path}/{name}"):
                self.files.rm_file(f"{self.path}/{name}")

    def _write_marker(self, files: dict[str, str], *, complete: bool) -> None:
        """Write `published.json`: the digests of the objects by name, and whether all were sent."""
        content = {"sweep": self.name, "key": self._own_key(), "complete": complete, "files": files}
        self.files.pipe_file(f"{self.path}/{MARKER}", json.dumps(content | {"digest": _digest(content)}).encode())

    def _read_marker(self) -> dict[str, Any] | None:
        """Return what `published.json` says; None if nothing is at the address, {} if something else is."""
        try:
            content = json.loads(self.files.cat_file(f"{self.path}/{MARKER}"))
        except FileNotFoundError:
            return {} if self._has_objects() else None
        except ValueError:
            return {}
        whole = isinstance(content, dict) and content.pop("digest", None) == _digest(content)
        return content if whole and all(is_below(name) and is_name_of_zarr(name) for name in content["files"]) else {}

    def _recorded_key(self) -> str | None:
        """Return the key of this folder of results; None before it has published anything."""
        return (read_json(self.directory / MARKER) or {}).get("key")

    def _own_key(self) -> str:
        """Return the key of this folder of results, which it gets when it publishes for the first time."""
        if (key := self._recorded_key()) is None:
            write_json(self.directory / MARKER, {"key": uuid4().hex})
        return key or self._own_key()

    def _has_objects(self) -> bool:
        """Return whether anything is at the address, but for what `check` writes."""
        try:
            return any(not name.endswith("/.probe") for name in self.files.find(self.path))
        except FileNotFoundError:
            return False

    def _refuse_others(self, marker: dict[str, Any] | None) -> None:
        """Raise InputError if, by what `_read_marker` returned, something else than this sweep's dataset is there."""
        if marker is not None and not marker:
            raise self._refusal("has files that no sweep has published, which would be mixed with the dataset")
        if marker and marker["sweep"] != self.name:
            raise self._refusal(f"has the dataset of the sweep {marker['sweep']!r}")
        if marker and marker.get("key") not in (None, self._recorded_key()):
            problem = "has the dataset of another folder of results whose sweep has this name"
            raise self._refusal(f"{problem}; to replace it, delete what is there")

    def _refusal(self, problem: str) -> InputError:
        """Return the error that an address cannot be used."""
        expected = "an address that can be written and has nothing else, such as s3://bucket/folder/name.zarr"
        return InputError(problem, key="publish", value=self.address, expected=expected)


def checked_address(address: str) -> str:
    """Return an address; InputError unless it has a protocol of fsspec and names a folder, without anything secret."""
    from fsspec.registry import known_implementations, registry

    kind = address.partition(":")[0]
    if "::" in address or "?" in address or "@" in address:
        expected = "PROTOCOL://BUCKET/FOLDER; users, passwords and tokens belong into the environment or into files"
        raise InputError("not a plain address: it has `@`, `?` or `::`", key="publish", value=kind, expected=expected)
    expected = "PROTOCOL://BUCKET/FOLDER, such as s3://bucket/name.zarr"
    try:
        parts = urlsplit(address)
    except ValueError as error:
        raise InputError(f"not an address: {error}", key="publish", value=address, expected=expected) from None
    if "://" not in address or not parts.scheme or not (parts.netloc + parts.path).strip("/"):
        raise InputError("not an address", key="publish", value=address, expected=expected)
    if parts.scheme not in (choices := sorted({*known_implementations, *registry})):
        raise InputError("unknown protocol", key="publish", value=parts.scheme, expected=expected, choices=choices)
    if parts.scheme == FORGETFUL:
        raise InputError("a store that ends with the command", key="publish", value=address, expected=expected)
    return address


def check_publishing(sweep: "Design", directory: Path) -> None:
    """Raise InputError unless the dataset of a sweep can be written where it is to be published, if anywhere."""
    if sweep.publish is not None:
        PublishAddress(sweep.publish, sweep.name, directory).check()


def publish_dataset(sweep: "Design", dataset: Path, again: Collection[str] = ()) -> None:
    """Publish the dataset of a sweep at its address, if it has one; objects named in `again` are sent in any case."""
    if sweep.publish is not None:
        with writer_lock(dataset.parent, dataset.name):
            PublishAddress(sweep.publish, sweep.name, dataset.parent).publish(present_folder(dataset), again)


def _with_time_limit(question: Callable[[], Returned]) -> Returned:
    """Return what a function returns; TimeoutError if that takes longer than `PATIENCE`."""
    answer = Future[Returned]()

    def ask() -> None:
        """Note the answer, or the error: the work of a thread, which cannot be ended if the store hangs."""
        try:
            answer.set_result(question())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()
    if wait([answer], PATIENCE).not_done:
        raise TimeoutError(f"no answer within {PATIENCE:g} s")
    return answer.result()


def _version(digests: dict[str, str]) -> str:
    """Return the version of a dataset, as its manifest's digest, from the digests of its objects by name."""
    return digest_of({name: content for name, content in digests.items() if name != MANIFEST})


def _digest(content: dict[str, Any]) -> str:
    """Return the digest of a marker's other entries."""
    return digest(json.dumps(content, sort_keys=True).encode())


def _reason(error: BaseException) -> str:
    """Return the first line of what an error says, or its name."""
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__
