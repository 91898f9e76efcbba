"""What a config names in the registries: dynamics, analyses, figures, clusters, and their options."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pydantic

from sweeplib.errors import InputError
from sweeplib.sweep.expected import choices, expected

if TYPE_CHECKING:
    from sweeplib.sweep.clusters import ClusterSettings


def run_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numerical options of the dynamics `name`, those not given at their defaults."""
    from sweeplib.dynamics import DYNAMICS

    return _validated(_found(DYNAMICS, name, "dynamics").Options, options, f"dynamics.{name}").model_dump()


def figure_options(figures: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the options of each figure named."""
    from sweeplib.figures import FIGURES

    return _plugged("figures", figures, FIGURES)


def analysis_options(analyses: Mapping[str, Any], figures: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the options of each analysis named, and of those that the figures need."""
    from sweeplib.analysis import ANALYSES
    from sweeplib.figures import FIGURES

    needed: dict[str, Any] = {need: {} for name in figures for need in FIGURES[name].needs}
    return _plugged("analyses", needed | dict(analyses), ANALYSES)


def cluster_settings(settings: Mapping[str, Any]) -> "ClusterSettings":
    """Return the settings of a cluster of the `kind` named."""
    from sweeplib.sweep.clusters import CLUSTERS

    if "kind" not in settings:
        raise InputError("a cluster needs a kind", key="cluster.kind", choices=CLUSTERS)
    kind = _found(CLUSTERS, settings["kind"], "cluster", key="kind")
    made: ClusterSettings = _validated(kind, settings, "cluster")
    return made


def _found(registry: Mapping[str, Any], name: Any, prefix: str, key: str | None = None) -> Any:
    try:
        return registry[name]
    except InputError as error:
        error.key = f"{prefix}.{key or name}"
        raise


def _validated(model: type[pydantic.BaseModel], given: Mapping[str, Any], key: str) -> Any:
    """Return the `model` made of the options given under `key`."""
    try:
        return model.model_validate(given)
    except pydantic.ValidationError as error:
        details = error.errors()[0]
        name = ".".join(str(part) for part in details["loc"])
        if details["type"] == "extra_forbidden":
            refusal = InputError("unknown option", key=f"{key}.{name}", value=name, choices=model.model_fields)
        elif details["type"] == "missing":
            refusal = InputError("this option is needed", key=f"{key}.{name}")
        else:
            words = choices(details)
            refusal = InputError("not a valid value", key=f"{key}.{name}", value=details["input"], choices=words)
            refusal.expected = None if words else expected(details)
        if not model.model_fields:
            refusal.expected = "no options"
        raise refusal from None


def _plugged(key: str, named: Mapping[str, Any], registry: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the options of each thing named, all of them options that it has."""
    for name, options in named.items():
        thing = _found(registry, name, key)
        try:
            thing.check(options)
        except InputError as error:
            raise error.within(prefix=f"{key}.{name}") from None
    return {name: dict(options) for name, options in named.items()}
