"""Conversion of the run store, `runs/`, to the labelled dataset `dataset.zarr`, reproducible to the byte.

`results` are those of each dynamics, by its name in the dataset; `coordinates` are all that the simulator has. A group
of cases are those whose arrays have the same lengths, "p4_k1"; its variables are in a group of zarr of this name, and
the variables with one shape for all cases, the shared ones, at the root.
"""

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
from sweeplib.engine.storage.records.artefacts import DATASET, EXECUTION_KEYS, SHOWN_KEYS, made_from
from sweeplib.engine.storage.records.config_files import write_description
from sweeplib.engine.storage.records.locks import writer_lock
from sweeplib.engine.storage.records.manifest import manifest_at
from sweeplib.engine.storage.records.provenance import CREDITS, git_commit, versions
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
        write_description(sweep, directory)
    return path


def dataset_in_memory(sweep: Design, directory: Path) -> "xr.Dataset":
    """Return the dataset that `finalise` would write, with the shared variables alone."""
    case = next(case for run in sweep.runs for _, case in sweep.cases(run))
    results, simulator = results_of_all(sweep, directory), sweep.simulator
    attributes = _constants(sweep, case) | sweep.recording.of_runs
    root = zarr.create_group(MemoryStore(), zarr_format=3)
    _write_shared(GroupWriter(root), sweep, results, simulator.coordinates(sweep, case), attributes)
    return plain(xr.open_zarr(root.store, chunks=None, consolidated=False))


def _write(sweep: Design, directory: Path, results: Mapping[str, Results], path: Path) -> None:
    """Write the dataset at `path`: what all cases share, then each group of cases, the smallest first."""
    case = next(case for run in sweep.runs for case in sweep.probed(run))
    coordinates, fixed_attributes = sweep.simulator.coordinates(sweep, case), _constants(sweep, case)
    with written_dataset(path, keep=True) as root:
        attributes = fixed_attributes | _attributes(sweep, directory, results)
        _write_shared(GroupWriter(root), sweep, results, coordinates, attributes)
        names = set[str]().union(*(of_dynamics.groups() for of_dynamics in results.values()))
        for name in sorted(names, key=lambda name: tuple(group_sizes(name).values())):
            sizes = ", ".join(f"{key} = {size}" for key, size in group_sizes(name).items())
            attributes = fixed_attributes | {"title": f"{sweep.name}, {sizes}"}
            _write_group(GroupWriter(root.create_group(name)), sweep, results, coordinates, attributes, name)


def _constants(sweep: Design, case: Case) -> dict[str, Any]:
    """Return attributes for what is the same at all points: each value, and under "fixed" what the names mean.

    Those are in words: 'k: teacher width; p: student width'. case : any of the sweep.
    """
    simulator = sweep.simulator
    constants = simulator.constants(sweep, case)
    meanings = (f"{name}: {simulator.label(name)['long_name']}" for name in sorted(constants))
    return {**constants, "fixed": "; ".join(meanings)}


def _write_shared(
    writer: GroupWriter,
    sweep: Design,
    results: Mapping[str, Results],
    coordinates: Sequence[Coordinate],
    attributes: Mapping[str, Any],
) -> None:
    """Write the shared variables, over the whole grid, with the coordinates that need no group, and the status."""
    region = region_of(sweep)
    for coordinate in coordinates:
        # along a dimension whose length not all cases share, a coordinate is written in each group
        if not sweep.simulator.shares({*coordinate.dims}.difference(region.dims, ["dynamics"])):
            continue
        writer.coordinate(coordinate.name, coordinate.dims, coordinate.values, coordinate.attributes)
    status = (region.status(of_dynamics) for of_dynamics in results.values())
    outer, sizes = ("dynamics", *region.dims), (len(results), *region.sizes)
    writer.stacked("status", outer, sizes, np.uint8, STATUS_LABELS, status)
    if sweep.takes_the_cheapest:
        _write_simulators(writer, region, results, outer[:-1], sizes[:-1])
    for dim, size in sorted(_write_variables(writer, region, results, None).items()):
        if (labels := sweep.simulator.counted(dim)) is not None:
            writer.coordinate(dim, (dim,), np.arange(size), labels)
    writer.finish(attributes)


def _write_simulators(
    writer: GroupWriter, region: Region, results: Mapping[str, Results], dims: Sequence[str], sizes: Sequence[int]
) -> None:
    """Write which dynamics ran each point of a law: the number of its name among all, over `dims` of `sizes`."""
    names = tuple(dict.fromkeys(name for of_dynamics in results.values() for name in of_dynamics.simulators))
    labels = {"long_name": "dynamics that ran the point", "flag_values": list(range(len(names) + 1))}
    numbers = (region.simulators(of_dynamics, names) for of_dynamics in results.values())
    writer.stacked("simulator", dims, sizes, np.uint8, labels | {"flag_meanings": " ".join(("none", *names))}, numbers)


def _write_group(
    writer: GroupWriter,
    sweep: Design,
    results: Mapping[str, Results],
    coordinates: Sequence[Coordinate],
    attributes: Mapping[str, Any],
    group: str,
) -> None:
    """Write the variables of one group of cases, over the smallest part of the grid that has all of its cases."""
    region = region_of(sweep, [of_dynamics.cases_of(group) for of_dynamics in results.values()])
    in_group = {name: of_dynamics for name, of_dynamics in results.items() if of_dynamics.variables(group)}
    dynamics = np.array([number for number, name in enumerate(results) if name in in_group])
    variables = [variable for of_dynamics in in_group.values() for variable in of_dynamics.variables(group).values()]
    inner = {dim for variable in variables for dim in variable.dims}
    for coordinate in coordinates:
        if {"dynamics", *region.dims, *inner}.issuperset(coordinate.dims):
            values = coordinate.at({**region.places, "dynamics": dynamics}).values
            writer.coordinate(coordinate.name, coordinate.dims, values, coordinate.attributes)
    _write_variables(writer, region, in_group, group)
    writer.finish(attributes)


def _write_variables(
    writer: GroupWriter, region: Region, results: Mapping[str, Results], group: str | None
) -> dict[str, int]:
    """Write the variables of one group, for None the shared ones; return the largest length of each dimension.

    Shorter ones are padded.
    """
    variables = dict(item for of_dynamics in results.values() for item in of_dynamics.variables(group).items())
    longest: dict[str, int] = {}
    for dim, size in (item for of_dynamics in results.values() for item in of_dynamics.inner_sizes(group)):
        longest[dim] = max(size, longest.get(dim, 0))
    for name, variable in sorted(variables.items()):
        dims = ("dynamics", *region.dims, *variable.dims)
        inner = tuple(longest[dim] for dim in variable.dims)
        sizes = (len(results), *region.sizes, *inner)
        parts = (region.values(of_dynamics, name, variable, group, inner) for of_dynamics in results.values())
        writer.stacked(name, dims, sizes, variable.dtype, variable.attributes, parts)
    return longest


def _attributes(sweep: Design, directory: Path, results: Mapping[str, Results]) -> dict[str, Any]:
    """Return the attributes that say where the dataset comes from; they are the same for repeated runs."""
    digest = hashlib.blake2b(digest_size=16)
    for of_dynamics in results.values():
        digest.update(of_dynamics.wanted.ids.tobytes())
    used = (rows.segment for of_dynamics in results.values() for rows in of_dynamics.used)
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
    """Return the text of a config without the keys that only affect how it is run, or what is shown of its dataset."""
    config = parsed(source)
    if not isinstance(config, dict):
        return source
    physics = {key: value for key, value in config.items() if key not in (*EXECUTION_KEYS, *SHOWN_KEYS)}
    return written(physics)
