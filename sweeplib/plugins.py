"""What a plugin needs: `from sweeplib.plugins import ACTIVATIONS, Activation`.

Each name is imported from the module that defines it when it is first used: a plugin loads the parts of sweeplib that
it names. docs/how-to/plugins.md says what each name is for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from sweeplib.code.exports import HOMES

if TYPE_CHECKING:
    from sweeplib.analysis import ANALYSES, Analysis
    from sweeplib.answers import PROPOSERS, Answer, Question, Row, State, rows_asked
    from sweeplib.design.cluster import CLUSTERS, ClusterSettings
    from sweeplib.dynamics import DYNAMICS, ONE_PASS, Dynamics, OverlapDynamics
    from sweeplib.dynamics.diagnostics import Diagnostic
    from sweeplib.dynamics.dynamics import NumericalOptions
    from sweeplib.dynamics.step_dynamics import StepDynamics
    from sweeplib.errors import InputError
    from sweeplib.figures import FIGURES, INTERACTIVE, Figure, Interactive
    from sweeplib.figures.kit.against import figure_against, theory_along
    from sweeplib.figures.kit.chart import Chart, chart_figure
    from sweeplib.figures.kit.facets import arranged
    from sweeplib.figures.kit.points import Curve, Level, Points
    from sweeplib.maths.activations import ACTIVATIONS, Activation
    from sweeplib.maths.activations.named import FORMS, spelled
    from sweeplib.maths.expectations import FAMILIES, Expectations, Family, expectations
    from sweeplib.maths.hermite import hermite_series
    from sweeplib.observables import OBSERVABLES, Observable
    from sweeplib.problem import (
        DATA,
        LOSSES,
        STARTS,
        TARGETS,
        TASKS,
        UPDATES,
        Course,
        DataLaw,
        Loss,
        Parameters,
        Problem,
        Start,
        Target,
        Tasks,
        Update,
        parameter,
    )
    from sweeplib.views import (
        Estimate,
        ExitLevel,
        NetworkView,
        OverlapView,
        ParticleView,
        TrainingView,
        TwoTimeView,
        View,
    )

__all__ = [
    "ACTIVATIONS",
    "ANALYSES",
    "CLUSTERS",
    "DATA",
    "DYNAMICS",
    "FAMILIES",
    "FIGURES",
    "FORMS",
    "INTERACTIVE",
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
    "Curve",
    "DataLaw",
    "Diagnostic",
    "Dynamics",
    "Estimate",
    "ExitLevel",
    "Expectations",
    "Family",
    "Figure",
    "InputError",
    "Interactive",
    "Level",
    "Loss",
    "NetworkView",
    "NumericalOptions",
    "Observable",
    "OverlapDynamics",
    "OverlapView",
    "Parameters",
    "ParticleView",
    "Points",
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
    "arranged",
    "chart_figure",
    "expectations",
    "figure_against",
    "hermite_series",
    "parameter",
    "rows_asked",
    "spelled",
    "theory_along",
]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(importlib.import_module(HOMES[name]), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
