"""The names that `sweeplib.plugins` offers, each with the module that defines it.

A digest follows a name that a plugin imports from `sweeplib.plugins` to this module, and to no other.
"""

INTERFACE = "sweeplib.plugins"
"""The module from which plugins import."""

HOMES = {
    "ACTIVATIONS": "sweeplib.maths.activations",
    "ANALYSES": "sweeplib.analysis",
    "Activation": "sweeplib.maths.activations",
    "Analysis": "sweeplib.analysis",
    "CLUSTERS": "sweeplib.design.cluster",
    "ClusterSettings": "sweeplib.design.cluster",
    "DATA": "sweeplib.problem",
    "DYNAMICS": "sweeplib.dynamics",
    "DataLaw": "sweeplib.problem",
    "Diagnostic": "sweeplib.dynamics.dynamics",
    "Dynamics": "sweeplib.dynamics",
    "Expectations": "sweeplib.maths.expectations",
    "FAMILIES": "sweeplib.maths.expectations",
    "FIGURES": "sweeplib.figures",
    "FORMS": "sweeplib.maths.activations.named",
    "Family": "sweeplib.maths.expectations",
    "Figure": "sweeplib.figures",
    "INTERACTIVE": "sweeplib.figures",
    "InputError": "sweeplib.errors",
    "Interactive": "sweeplib.figures",
    "NetworkView": "sweeplib.views",
    "NumericalOptions": "sweeplib.dynamics.dynamics",
    "OBSERVABLES": "sweeplib.observables",
    "ONE_PASS": "sweeplib.dynamics",
    "Observable": "sweeplib.observables",
    "OverlapDynamics": "sweeplib.dynamics",
    "OverlapView": "sweeplib.views",
    "ParticleView": "sweeplib.views",
    "Parameters": "sweeplib.problem",
    "Problem": "sweeplib.problem",
    "STARTS": "sweeplib.problem",
    "Start": "sweeplib.problem",
    "StepDynamics": "sweeplib.dynamics.step_dynamics",
    "TARGETS": "sweeplib.problem",
    "Target": "sweeplib.problem",
    "TrainingView": "sweeplib.views",
    "TwoTimeView": "sweeplib.views",
    "View": "sweeplib.views",
    "expectations": "sweeplib.maths.expectations",
    "hermite_series": "sweeplib.maths.hermite",
    "parameter": "sweeplib.problem",
    "spelled": "sweeplib.maths.activations.named",
}
