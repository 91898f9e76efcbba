"""What a plugin needs: `from sweeplib.plugins import ACTIVATIONS, Activation`.

Each name is imported from the module that defines it when it is first used: a plugin loads the parts of sweeplib that
it names. docs/how-to/plugins.md says what each name is for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from sweeplib.engine.code.exports import FORMER, homes

if TYPE_CHECKING:
    from sweeplib.analysis import ANALYSES, Analysis
    from sweeplib.analysis.analysis import analysis_of
    from sweeplib.analysis.answers import PROPOSERS, Answer, Question, Row, State, rows_asked
    from sweeplib.analysis.kit.seed_values import curves_along, outline_along
    from sweeplib.engine.design.cluster import CLUSTERS, ClusterSettings
    from sweeplib.errors import InputError
    from sweeplib.networks.dynamics import DYNAMICS, ONE_PASS, Dynamics, OverlapDynamics
    from sweeplib.networks.dynamics.diagnostics import Diagnostic
    from sweeplib.networks.dynamics.dynamics import NumericalOptions
    from sweeplib.networks.dynamics.step_dynamics import StepDynamics
    from sweeplib.networks.maths.activations import ACTIVATIONS, Activation
    from sweeplib.networks.maths.activations.named import FORMS, spelled
    from sweeplib.networks.maths.expectations import FAMILIES, Expectations, Family, expectations
    from sweeplib.networks.maths.hermite import hermite_series
    from sweeplib.networks.observables import OBSERVABLES, Observable
    from sweeplib.networks.problem import (
        DATA,
        LOSSES,
        STARTS,
        TARGETS,
        TASKS,
        UPDATES,
        Course,
        DataLaw,
        Feature,
        Limit,
        Loss,
        Parameters,
        Problem,
        Start,
        Target,
        Tasks,
        Update,
        parameter,
    )
    from sweeplib.networks.views import (
        Estimate,
        ExitLevel,
        NetworkView,
        OverlapView,
        ParticleView,
        TrainingView,
        TwoTimeView,
        View,
    )
    from sweeplib.pictures.figures import FIGURES, Figure
    from sweeplib.pictures.figures.figure import chart_figure
    from sweeplib.pictures.figures.kit.against import figure_against, theory_along
    from sweeplib.pictures.figures.kit.chart import Chart, Layer, Level
    from sweeplib.pictures.figures.kit.facets import arranged
    from sweeplib.statistics.bootstrap import resampling_of
    from sweeplib.statistics.fits import power_of
    from sweeplib.statistics.labelled import with_bounds
    from sweeplib.statistics.laws import law_along
    from sweeplib.statistics.optima import first_crossing, minimum

__all__ = [
    "ACTIVATIONS",
    "ANALYSES",
    "CLUSTERS",
    "DATA",
    "DYNAMICS",
    "FAMILIES",
    "FIGURES",
    "FORMS",
    "LOSSES",
    "OBSERVABLES",
    "ONE_PASS",
    "PROPOSERS",
    "STARTS",
    "TARGETS",
    "TASKS",
    "UPDATES",
    "Activation",
    "Analysis",
    "Answer",
    "Chart",
    "ClusterSettings",
    "Course",
    "DataLaw",
    "Diagnostic",
    "Dynamics",
    "Estimate",
    "ExitLevel",
    "Expectations",
    "Family",
    "Feature",
    "Figure",
    "InputError",
    "Layer",
    "Level",
    "Limit",
    "Loss",
    "NetworkView",
    "NumericalOptions",
    "Observable",
    "OverlapDynamics",
    "OverlapView",
    "Parameters",
    "ParticleView",
    "Problem",
    "Question",
    "Row",
    "Start",
    "State",
    "StepDynamics",
    "Target",
    "Tasks",
    "TrainingView",
    "TwoTimeView",
    "Update",
    "View",
    "analysis_of",
    "arranged",
    "chart_figure",
    "curves_along",
    "expectations",
    "figure_against",
    "first_crossing",
    "hermite_series",
    "law_along",
    "minimum",
    "outline_along",
    "parameter",
    "power_of",
    "resampling_of",
    "rows_asked",
    "spelled",
    "theory_along",
    "with_bounds",
]


def __getattr__(name: str) -> Any:
    """Return a name of this module from its home, when it is first used; InputError for one that is no longer there."""
    if name in FORMER:
        from sweeplib.errors import InputError

        raise InputError("it is no longer there", value=name, expected=FORMER[name])
    if name not in homes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(importlib.import_module(homes()[name]), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
