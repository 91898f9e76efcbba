"""Conversion of the run store, `runs/`, to the labelled dataset `dataset.zarr`, reproducible to the byte."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from zarr.storage import MemoryStore

from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.cases import Case
from sweeplib.engine.design.design import Design
from sweeplib.engine.files.strict_yaml import parsed, written
from sweeplib.engine.groups import group_sizes
from sweeplib.engine.status import STATUS_LABELS
from sweeplib.engine.storage.dataset.coordinates import Coordinate
from sweeplib.engine.storage.dataset.folder import GroupWriter, plain, written_dataset
from sweeplib.engine.storage.dataset.results import Region, Results, region_of, results_of_all
from sweeplib.engine.storage.records.artefacts import DATASET, EXECUTION_KEYS, made_from
from sweeplib.engine.storage.records.config_files import write_complete_config
from sweeplib.engine.storage.records.locks import writer_lock
from sweeplib.engine.storage.records.manifest import manifest_at
from sweeplib.engine.storage.records.provenance import CREDITS, git_commit, versions
from sweeplib.engine.storage.records.readme import write_readme
from sweeplib.engine.storage.records.stage_records import recorded_stage


def finalise(sweep: Design, directory: Path) -> Path:
    """Write the sweep's dataset under `directory`, its record, complete config and README.md; return its path.

    InputError if a case is missing, DamageError if a case cannot be read. The bytes of the dataset depend only on the
    config and on the numerics, not on tasks, workers, crashes, or the order in which the sweep grew. One variable
    of one dynamics is in memory at a time.
    """
    path = directory / DATASET
    with writer_lock(directory, DATASET), recorded_stage(directory, "finalise") as record:
        now = made_from(sweep, directory, "finalise")
        _write(sweep, directory, results_of_all(sweep, directory), path)
        record.write_result(now, digest=manifest_at(path).digest)
        write_complete_config(sweep, directory)
        write_readme(sweep, directory)
    return path


def dataset_in_memory(sweep: Design, directory: Path) -> "xr.Dataset":
    """Return the dataset that `finalise` would write, without the variables whose shape not all cases share."""
    case = next(case for run in sweep.runs for _, case in sweep.cases(run))
    results, simulator = results_of_all(sweep, directory), sweep.simulator
    attributes = _constants(sweep, case) | sweep.recording.of_runs
    root = zarr.create_group(MemoryStore(), zarr_format=3)
    _write_shared(GroupWriter(root), sweep, results, simulator.coordinates(sweep, case), attributes)
    return plain(xr.open_zarr(root.store, chunks=None, consolidated=False))


def _write(sweep: Design, directory: Path, results: Mapping[str, Results], path: Path) -> None:
    """Write the dataset at `path`: what all cases share, then each group of cases."""
    case = next(case for run in sweep.runs for case in sweep.probed(run))
    every, fixed_attributes = sweep.simulator.coordinates(sweep, case), _constants(sweep, case)
    with written_dataset(path, keep=True) as root:
        _write_shared(
            GroupWriter(root), sweep, results, every, fixed_attributes | _attributes(sweep, directory, results)
        )
        names = set[str]().union(*(of_run.groups() for of_run in results.values()))
        for name in sorted(names, key=lambda name: tuple(group_sizes(name).values())):
            sizes = ", ".join(f"{key} = {size}" for key, size in group_sizes(name).items())
            attributes = fixed_attributes | {"title": f"{sweep.name}, {sizes}"}
            _write_group(GroupWriter(root.create_group(name)), sweep, results, every, attributes, name)


def _constants(sweep: Design, case: Case) -> dict[str, Any]:
    """Return what is the same at all points, with its meaning: 'k: teacher width; p: student width'."""
    simulator = sweep.simulator
    constants = simulator.constants(sweep, case)
    meanings = (f"{name}: {simulator.label(name)['long_name']}" for name in sorted(constants))
    return {**constants, "fixed": "; ".join(meanings)}


def _write_shared(
    writer: GroupWriter,
    sweep: Design,
    results: Mapping[str, Results],
    every: Sequence[Coordinate],
    attributes: Mapping[str, Any],
) -> None:
    """Write the variables whose shape all cases share, over the whole grid."""
    region = region_of(sweep)
    for coordinate in every:
        if not sweep.simulator.shares({*coordinate.dims}.difference(region.dims, ["dynamics"])):
            continue
        writer.coordinate(coordinate.name, coordinate.dims, coordinate.values, coordinate.attributes)
    status = (region.status(of_run) for of_run in results.values())
    outer, sizes = ("dynamics", *region.dims), (len(results), *region.sizes)
    writer.stacked("status", outer, sizes, np.uint8, STATUS_LABELS, status)
    if sweep.takes_the_cheapest:
        _write_simulators(writer, region, results, outer[:-1], sizes[:-1])
    _write_variables(writer, region, results, None)
    writer.finish(attributes)


def _write_simulators(
    writer: GroupWriter, region: Region, results: Mapping[str, Results], dims: Sequence[str], sizes: Sequence[int]
) -> None:
    """Write which dynamics ran each point."""
    names = tuple(dict.fromkeys(name for of_run in results.values() for name in of_run.simulators))
    labels = {"long_name": "dynamics that ran the point", "flag_values": list(range(len(names) + 1))}
    numbers = (region.simulators(of_run, names) for of_run in results.values())
    writer.stacked("simulator", dims, sizes, np.uint8, labels | {"flag_meanings": " ".join(("none", *names))}, numbers)


def _write_group(
    writer: GroupWriter,
    sweep: Design,
    results: Mapping[str, Results],
    every: Sequence[Coordinate],
    attributes: Mapping[str, Any],
    group: str,
) -> None:
    """Write the variables of one group, over the smallest part of the grid that has all of its cases."""
    region = region_of(sweep, [of_run.cases_of(group) for of_run in results.values()])
    there = {name: of_run for name, of_run in results.items() if of_run.variables(group)}
    dynamics = np.array([number for number, name in enumerate(results) if name in there])
    inner = {dim for of_run in there.values() for variable in of_run.variables(group).values() for dim in variable.dims}
    for coordinate in every:
        if {"dynamics", *region.dims, *inner}.issuperset(coordinate.dims):
            of_run = coordinate.at({**region.places, "dynamics": dynamics})
            writer.coordinate(of_run.name, of_run.dims, of_run.values, of_run.attributes)
    _write_variables(writer, region, there, group)
    writer.finish(attributes)


def _write_variables(writer: GroupWriter, region: Region, results: Mapping[str, Results], group: str | None) -> None:
    """Write the variables of one group (or the shared ones), padded to the largest length of each dimension."""
    every = {name: variable for of_run in results.values() for name, variable in of_run.variables(group).items()}
    longest: dict[str, int] = {}
    for dim, size in (size_of_dim for of_run in results.values() for size_of_dim in of_run.inner_sizes(group)):
        longest[dim] = max(size, longest.get(dim, 0))
    for name, variable in sorted(every.items()):
        dims = ("dynamics", *region.dims, *variable.dims)
        inner = tuple(longest[dim] for dim in variable.dims)
        sizes = (len(results), *region.sizes, *inner)
        parts = (region.values(of_run, name, variable, group, inner) for of_run in results.values())
        writer.stacked(name, dims, sizes, variable.dtype, variable.attributes, parts)


def _attributes(sweep: Design, directory: Path, results: Mapping[str, Results]) -> dict[str, Any]:
    """Return the attributes that say where the dataset comes from; they are the same for repeated runs."""
    digest = hashlib.blake2b(digest_size=16)
    for of_run in results.values():
        digest.update(of_run.wanted.ids.tobytes())
    used = (rows.segment for of_run in results.values() for rows in of_run.used)
    processors = {name for segment in used for name in segment.processors}
    credited = zip(CREDITS, ("; ".join(sweep.authors), sweep.licence), strict=True)
    return {
        "title": sweep.name,
        "Conventions": "CF-1.11",
        **{name: text for name, text in credited if text},
        "config": _physics(sweep.source),
        "digest": digest.hexdigest(),
        "versions": ", ".join(f"{name} {version}" for name, version in versions().items()),
        "git_commit": git_commit() or "unknown",
        "processors": ", ".join(sorted(processors)),
    } | sweep.recording.of_runs


def _physics(source: str) -> str:
    """Return the text of a config without the keys that only affect how it is run."""
    config = parsed(source)
    if not isinstance(config, dict):
        return source
    physics = {key: value for key, value in config.items() if key not in EXECUTION_KEYS}
    return written(physics)
