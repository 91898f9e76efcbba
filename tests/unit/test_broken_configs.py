"""Every error in a config is reported in one line: file, line, key, value, expected values, the nearest name."""

import math
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from sweeplib.analysis import ANALYSES
from sweeplib.commands.up_to_date import complete_run
from sweeplib.config import load
from sweeplib.config.overrides import Override
from sweeplib.errors import InputError
from sweeplib.pictures.figures import FIGURES
from tests.tiers import slow_but

SOUND = """\
problem: {p: 1, k: 1, activation: square, spherical: true}
grid:
  d: [300, 1000]
  Delta: [0, 0.5]
  gamma: [0.05, 0.1]
seeds: 4
dynamics:
  sgd_chain:
  sgd: {where: {d: [300]}}
times: {linspace: [0, 12, 5]}
thresholds: [0.01]
stop: exit
analyses: [exit_times]
"""


class Broken(NamedTuple):
    """A line of the sound config, its replacement, and the parts that the message must have."""

    line: str
    instead: str
    said: tuple[str, ...]


GAMMA = "  gamma: [0.05, 0.1]"
DELTA = "  Delta: [0, 0.5]"
D = "  d: [300, 1000]"
PROBLEM = "problem: {p: 1, k: 1, activation: square, spherical: true}"
SGD = "  sgd: {where: {d: [300]}}"
TIMES = "times: {linspace: [0, 12, 5]}"
DERIVED = "\nderive: {gamma: %s}"

BROKEN = {
    "unknown key": Broken("seeds: 4", "seed: 4", (":6: seed: unknown key", "did you mean 'seeds'?")),
    "field at the top": Broken(
        "seeds: 4", "seeds: 4\nDelta: 0.5", (":7: Delta: unknown key", "below `problem`, `grid` or `derive`")
    ),
    "missing key": Broken(TIMES, "", (": times: this key is needed", "such as `times: {linspace")),
    "key given twice": Broken(DELTA, "  d: [10]", (":4: key given twice, first on line 3; got 'd'",)),
    "not YAML": Broken(DELTA, "  Delta: [0, 0.5", (": not YAML: ",)),
    "tab": Broken(DELTA, "\tDelta: [0, 0.5]", (":4: not YAML: ", "'\\t'")),
    "no space after a colon": Broken(
        PROBLEM, PROBLEM.replace("p: 1", "p:1"), (": no space after the colon; got 'p:1'; expected `p: 1`",)
    ),
    "deeper than the line above": Broken(
        DELTA, "    Delta: [0, 0.5]", (":4: not YAML: ", "expected the indentation of the")
    ),
    "no space after a colon in a block": Broken(
        DELTA, "  Delta:0.5", (":4: no space after the colon; got 'Delta:0.5'; expected `Delta: 0.5`",)
    ),
    "memory without a unit": Broken(
        "seeds: 4",
        "seeds: 4\ncluster: {kind: local, memory_limit: 4}",
        ("cluster.memory_limit: ", "got 4; expected 'auto', a size"),
    ),
    "tab inside a line": Broken(
        "seeds: 4", "seeds:\t4", (":6: not YAML: ", "column 7; expected a space in place of the tab")
    ),
    "options in a list": Broken(
        "analyses: [exit_times]",
        "analyses: [{exit_times: {confidence: 0.9}}]",
        (":13: analyses[0]: not a name", "`{first: {option: value}, second: {}}`"),
    ),
    "symbol that is not finite": Broken(
        GAMMA,
        f"  tau: [0.5, .nan]{DERIVED % 'tau'}",
        ("grid.tau[1]: not a value of tau; got nan; expected a finite number",),
    ),
    "two signs that look alike": Broken(
        GAMMA,
        f"  \N{MICRO SIGN}: [0.5]{DERIVED % chr(0x3BC)}",
        ("read as '\\u03bc'", "expected `\N{GREEK SMALL LETTER MU}`, copied from here"),
    ),
    "swept twice": Broken(
        GAMMA, f"{GAMMA}\n  zip: [{{gamma: [1, 2], p: [1, 2]}}]", ("grid.zip: given twice, in grid.gamma too",)
    ),
    "python tag": Broken("seeds: 4", "seeds: !!python/object/apply:os.getcwd []", (":6: not YAML: ", "python")),
    "misspelt activation": Broken(
        PROBLEM,
        "problem: {p: 1, k: 1, activation: sqare}",
        (":1: problem.activation: unknown activation; got 'sqare'", "erf, he1, he2", "did you mean 'square'?"),
    ),
    "comma in a text without quotes": Broken(
        PROBLEM,
        "problem: {p: 1, k: 1, activation: hermite(0, 1, 2)}",
        (":1: inside { } and [ ] a comma ends the text; got 'hermite(0'", "quotes", "'hermite(0, 1)'"),
    ),
    "misspelt activation of an axis": Broken(
        GAMMA,
        GAMMA + "\n  teacher_activation: [square, ert]",
        (":6: grid.teacher_activation[1]: unknown activation; got 'ert'", "did you mean 'erf'?"),
    ),
    "misspelt start": Broken(
        PROBLEM,
        "problem: {p: 1, k: 1, activation: square, start: spere}",
        (":1: problem.start: unknown start; got 'spere'; expected one of gaussian, sphere", "did you mean 'sphere'?"),
    ),
    "misspelt target of an axis": Broken(
        GAMMA,
        GAMMA + "\n  target: [committee, lam1lam2]",
        (":6: grid.target[1]: unknown target; got 'lam1lam2'", "did you mean 'lam1*lam2'?"),
    ),
    "target of two fields": Broken(
        GAMMA,
        GAMMA + "\n  target: [lam1*lam2]",
        ("the target needs another teacher width", "got 1", "expected 2, for the target lam1*lam2"),
    ),
    "batch of none": Broken(GAMMA, GAMMA + "\n  batch_size: [0]", (":6: grid.batch_size[0]: ", "got 0", "at least 1")),
    "field that a dynamics does not act on": Broken(
        GAMMA,
        GAMMA + "\n  samples: [1000]",
        (
            ":9: dynamics.sgd_chain: sgd_chain does not act on samples: ",
            "no Markov chain",
            "got 1000",
            "expected null, its default; or",
        ),
    ),
    "batch that another dynamics acts on": Broken(
        "seeds: 4\ndynamics:\n  sgd_chain:",
        "  repeats: [4]\nseeds: 4\ndynamics:\n  ode:",
        (":9: dynamics.ode: ode does not act on repeats: ", "got 4", "acts on it: ", "sgd, sgd_chain", "`where`"),
    ),
    "large batch that is reused": Broken(
        PROBLEM,
        "problem: {p: 1, k: 1, activation: square, spherical: true, batch_size: 200, repeats: 2}",
        ("dynamics.sgd_chain: batch too large to be reused at ", "got 200", "at most 128 with repeats > 1"),
    ),
    "dimension of a view": Broken(GAMMA, f"  student: [1]{DERIVED % 'student/d'}", (":5: grid.student: ",)),
    "negative d": Broken(D, "  d: [300, -1]", (":3: grid.d[1]: not a value of d; got -1", "at least 1")),
    "d that is no whole number": Broken(D, "  d: [300.5]", (":3: grid.d[0]: ", "got 300.5", "a whole number")),
    "p < 1": Broken(
        PROBLEM,
        "problem: {p: 0, k: 1, activation: square}",
        (":1: problem.p: not a value of p; got 0", "expected a number of at least 1"),
    ),
    "gamma 0": Broken(GAMMA, "  gamma: [0, 0.1]", (":5: grid.gamma[0]: ", "got 0", "a number greater than 0")),
    "NaN": Broken(DELTA, "  Delta: [0, .nan]", (":4: grid.Delta[1]: ", "got nan", "a finite number")),
    "infinity": Broken(DELTA, "  Delta: [.inf]", (":4: grid.Delta[0]: ", "got inf", "a finite number")),
    "text for a number": Broken(GAMMA, '  gamma: ["0.1"]', (":5: grid.gamma[0]", "got '0.1'", "without quotes")),
    "yes for a number": Broken(GAMMA, "  gamma: [true]", (":5: grid.gamma[0]: ", "got True", "a number")),
    "value given twice": Broken(GAMMA, "  gamma: [0.1, 0.05, 0.1]", (":5: grid.gamma[2]: value given twice; got 0.1",)),
    "empty axis": Broken(GAMMA, "  gamma: []", (":5: grid.gamma: an axis needs at least one value",)),
    "axis that is a number": Broken(
        GAMMA, "  gamma: 0.1", (":5: grid.gamma: ", "got 0.1", "a list, or one of {linspace")
    ),
    "axis without value": Broken(GAMMA, "  gamma:", (":5: grid.gamma: ", "got None", "a list")),
    "empty grid": Broken(
        f"grid:\n{D}\n{DELTA}\n{GAMMA}",
        "grid: {}",
        (":1: problem.gamma: this field of a problem is needed", "an axis in `grid`"),
    ),
    "wrong type of the grid": Broken(
        f"grid:\n{D}\n{DELTA}\n{GAMMA}", "grid: [300]", (":2: grid: ", "got [300]", "`name: value` lines")
    ),
    "missing field": Broken(DELTA, "", (": problem.Delta: this field of a problem is needed",)),
    "misspelt field": Broken(
        DELTA, "  delta: [0, 0.5]", (":4: grid.delta: unknown name", "got 'delta'", "did you mean 'Delta'?")
    ),
    "label of a field": Broken(
        GAMMA, GAMMA.replace("gamma", "learning_rate"), (":5: grid.learning_rate: ", "did you mean 'gamma'?")
    ),
    "unused symbol": Broken(
        GAMMA, GAMMA + "\n  gamma0: [1, 2]", (":6: grid.gamma0: unknown name", "did you mean 'gamma'?")
    ),
    "axis and fixed": Broken(GAMMA, GAMMA + "\n  p: [1, 2]", (":6: grid.p: given twice, in problem.p too; got 'p'",)),
    "axis and derived": Broken(GAMMA, GAMMA + DERIVED % "1/d", (":6: derive.gamma: given twice, in grid.gamma too",)),
    "a spacing beside the scale of times": Broken(
        "times: {linspace: [0, 12, 5]}",
        "times: {scale: d, linspace: [0, 12, 5]}",
        (":10: times.linspace: unknown key", "`values: {linspace: ...}` beside `scale`"),
    ),
    "values by a name": Broken(
        GAMMA, "  gamma: {values: [0.05, 0.1]}", (":5: grid.gamma: a list has no name", "the list alone: [0.05, 0.1]")
    ),
    "seed as an axis": Broken(GAMMA, GAMMA + "\n  seed: [1, 2]", (":6: grid.seed: ", "seeds are given by `seeds`")),
    "name of a result": Broken(
        GAMMA, f"  risk: [1]{DERIVED % 'risk/d'}", (":5: grid.risk: the name of a result; got 'risk'", "another name")
    ),
    "name of an attribute of the dataset": Broken(
        GAMMA, f"  title: [1]{DERIVED % 'title/d'}", (":5: grid.title: the name of a result", "another name")
    ),
    "unknown spacing": Broken(
        GAMMA,
        "  gamma: {linspce: [0, 1, 3]}",
        (":5: grid.gamma: unknown spacing; got 'linspce'", "expected a list, or one of", "did you mean 'linspace'?"),
    ),
    "spacing without count": Broken(
        GAMMA, "  gamma: {linspace: [0, 1]}", (":5: grid.gamma.linspace: ", "got [0, 1]", "[first, last, count]")
    ),
    "spacing with part of a value": Broken(
        GAMMA,
        "  gamma: {linspace: [0, 1, 2.5]}",
        (":5: grid.gamma.linspace[2]: ", "got 2.5", "a whole number of values"),
    ),
    "geomspace from 0": Broken(
        GAMMA,
        "  gamma: {geomspace: [0, 1, 3]}",
        (":5: grid.gamma.geomspace: geomspace needs positive ends; got [0, 1, 3]",),
    ),
    "linked axes of unequal length": Broken(
        D, "  zip: [{d: [300, 1000], k: [1]}]", (":3: grid.zip[0].k: linked axes differ in length; got [1]", "2 values")
    ),
    "bad expression": Broken(
        GAMMA, DERIVED % "1/(d", (":6: derive.gamma: not an expression", "got '1/(d'", "numbers, names")
    ),
    "expression that runs code": Broken(
        GAMMA, DERIVED % "\"__import__('os').getpid()\"", (":6: derive.gamma: not allowed in an expression",)
    ),
    "expression that never ends": Broken(
        GAMMA,
        DERIVED % "9**9**9**9",
        (":6: derive.gamma: not a finite number: `9**9**9` at character 4",),
    ),
    "unknown name in an expression": Broken(
        GAMMA,
        DERIVED % "1/Dleta",
        (":6: derive.gamma: unknown name in '1/Dleta'; got 'Dleta'", "did you mean 'Delta'?"),
    ),
    "unknown function in an expression": Broken(
        GAMMA, DERIVED % "1/sqr(d)", (":6: derive.gamma: unknown function", "got 'sqr'", "did you mean 'sqrt'?")
    ),
    "derived in a circle": Broken(
        GAMMA, "\nderive: {gamma: 1/x, x: d*gamma}", (":6: derive.gamma: derived from itself (gamma -> x -> gamma)",)
    ),
    "derived to nothing": Broken(
        GAMMA, DERIVED % "1/(1000 - d)", (":6: derive.gamma: ", "at d=1000 (division by zero)", "got '1/(1000 - d)'")
    ),
    "derived out of range": Broken(
        GAMMA, DERIVED % "0.5 - Delta", (":6: derive.gamma: ", "0.5 - Delta at Delta=0.5; got 0.0", "greater than 0")
    ),
    "p < 1 somewhere": Broken(
        PROBLEM,
        'problem: {k: 1, activation: square}\nderive: {p: "round(d/700)"}',
        (":2: derive.p: ", "round(d/700) at d=300; got 0", "at least 1"),
    ),
    "number for an expression": Broken(GAMMA, DERIVED % "0.1", (":6: derive.gamma: ", "got 0.1", "a text")),
    "no seeds": Broken("seeds: 4", "seeds: 0", (":6: seeds: not a number of seeds; got 0", "1 or more")),
    "negative seed": Broken("seeds: 4", "seeds: [1, -2]", (":6: seeds[1]: not a seed; got -2", "whole numbers from 0")),
    "seed twice": Broken("seeds: 4", "seeds: [1, 1]", (":6: seeds: not seeds; got [1, 1]", "different whole numbers")),
    "no dynamics": Broken(
        "dynamics:\n  sgd_chain:\n" + SGD,
        "dynamics: []",
        (":7: dynamics: no dynamics; got []; expected at least one, such as `[sgd_chain, ode]`",),
    ),
    "runs whose names differ in case alone": Broken(
        "  sgd_chain:",
        "  sgd_chain-a:\n  sgd_chain-A:",
        (
            ":7: dynamics: a second spelling of sgd_chain-a; got 'sgd_chain-A'",
            "differ in more than the case of letters",
        ),
    ),
    "unknown dynamics": Broken(
        "  sgd_chain:", "  sgd_chian:", (":8: dynamics.sgd_chian: unknown dynamics", "did you mean 'sgd_chain'?")
    ),
    "hyphen in a dynamics": Broken(
        "  sgd_chain:",
        "  sgd-chain:",
        (":8: dynamics.sgd-chain: a run of sgd ", "expected `sgd_chain`, or another word"),
    ),
    "unknown option": Broken(
        "  sgd_chain:",
        "  ode: {rtoll: 1e-6}",
        (":8: dynamics.ode.rtoll: unknown option; got 'rtoll'", "did you mean 'rtol'?"),
    ),
    "option out of range": Broken(
        "  sgd_chain:", "  ode: {rtol: 0}", (":8: dynamics.ode.rtol: ", "got 0", "expected a number of at least 1e-13")
    ),
    "option that is a word": Broken(
        "  sgd_chain:", "  ode: {rtol: fine}", (":8: dynamics.ode.rtol: ", "got 'fine'", "a number")
    ),
    "option where there is none": Broken(
        "  sgd_chain:", "  overlap_map: {rtol: 1e-6}", (":8: dynamics.overlap_map.rtol: unknown option", "no options")
    ),
    "when of an unknown name": Broken(
        "  sgd_chain:", "  sgd_chain: {when: D < 3}", (":8: dynamics.sgd_chain.when: unknown name", "got 'D'")
    ),
    "when that is never true": Broken(
        "  sgd_chain:", "  sgd_chain: {when: d < 3}", (":8: dynamics.sgd_chain.when: true at no point", "got 'd < 3'")
    ),
    "when that is no expression": Broken(
        "  sgd_chain:", "  sgd_chain: {when: open(d)}", (":8: dynamics.sgd_chain.when: ", "got 'open'")
    ),
    "where off the grid": Broken(
        SGD, "  sgd: {where: {d: [305]}}", (":9: dynamics.sgd.where.d: ", "got 305", "did you mean 300?")
    ),
    "where on no axis": Broken(
        SGD,
        "  sgd: {where: {D: [300]}}",
        (":9: dynamics.sgd.where: not an axis of the grid; got 'D'", "Delta, d, gamma"),
    ),
    "where on no seed": Broken(
        SGD,
        "  sgd: {where: {seed: [9]}}",
        (":9: dynamics.sgd.where.seed: not a seed of the sweep; got 9", "the 4 seeds"),
    ),
    "dynamics that does not apply": Broken(
        PROBLEM,
        PROBLEM.replace("}", ", samples: 10}"),
        (":8: dynamics.sgd_chain: ", "sgd_chain does not act on samples", "got 10"),
    ),
    "times not ascending": Broken(TIMES, "times: [0, 2, 1]", (":10: times[2]: not ascending; got 1", "more than 2")),
    "negative time": Broken(TIMES, "times: [-1, 2]", (":10: times[0]: ", "got -1", "a finite number from 0")),
    "no times": Broken(TIMES, "times: []", (":10: times: no times; got []", "at least one")),
    "unknown key of times": Broken(
        TIMES, "times: {values: [0, 1], scal: p}", (":10: times.scal: unknown key; got 'scal'", "did you mean 'scale'?")
    ),
    "unknown name in the clock": Broken(
        TIMES,
        "times: {values: [0, 1], scale: p/gama}",
        (":10: times.scale: unknown name in p/gama", "did you mean 'gamma'?"),
    ),
    "clock that stands still": Broken(
        TIMES,
        "times: {values: [0, 1], scale: Delta}",
        (":10: times.scale: the clock is not positive", "Delta=0.0; got 0.0"),
    ),
    "threshold 0": Broken(
        "thresholds: [0.01]", "thresholds: [0]", (":11: thresholds[0]: ", "got 0", "a number between 0 and 1")
    ),
    "threshold in per cent": Broken(
        "thresholds: [0.01]", "thresholds: [1 %]", (":11: thresholds[0]: ", "got '1 %'", "a number: 1 % is 0.01")
    ),
    "threshold 1": Broken(
        "thresholds: [0.01]", "thresholds: [0.5, 1]", (":11: thresholds[1]: ", "got 1", "a number between 0 and 1")
    ),
    "stop at nothing": Broken(
        "thresholds: [0.01]", "", (":12: stop: no threshold to stop at; got 'exit'", "`stop: end`")
    ),
    "unknown stop": Broken("stop: exit", "stop: exits", (":12: stop: ", "got 'exits'", "did you mean 'exit'?")),
    "unknown observable": Broken(
        "stop: exit",
        "stop: exit\nobservables: [rsik]",
        (":13: observables[0]: unknown observable; got 'rsik'", "'risk'?"),
    ),
    "unknown analysis": Broken(
        "analyses: [exit_times]",
        "analyses: [exit_tims]",
        (":13: analyses.exit_tims: unknown analysis", "'exit_times'?"),
    ),
    "unknown option of an analysis": Broken(
        "analyses: [exit_times]",
        "analyses: {optimal_learning_rate: {confidance: 0.9}}",
        ("confidance", "'confidence'?"),
    ),
    "unknown figure": Broken(
        "stop: exit",
        "stop: exit\nfigures: [learning_rate_scn]",
        (":13: figures.learning_rate_scn: unknown figure", "_scan'?"),
    ),
    "unknown field to pair by": Broken(
        "stop: exit",
        "stop: exit\npair_by: [seed, dd]",
        (":13: pair_by[1]: unknown field of a problem; got 'dd'", "'d'?"),
    ),
    "unknown kind of cluster": Broken(
        "stop: exit",
        "stop: exit\ncluster: {kind: locl}",
        (":13: cluster.kind: unknown cluster; got 'locl'", "'local'?"),
    ),
    "cluster without address": Broken(
        "stop: exit",
        "stop: exit\ncluster: {kind: address}",
        (':13: cluster.address: this option is needed; expected address of the scheduler, such as "tcp://',),
    ),
    "jobs without memory": Broken(
        "stop: exit",
        "stop: exit\ncluster: {kind: slurm, jobs: 2}",
        (':13: cluster.memory: this option is needed; expected memory of a job, such as "8GB" (text)',),
    ),
    "memory without unit": Broken(
        "stop: exit",
        "stop: exit\ncluster: {kind: slurm, jobs: 2, memory: 4, walltime: '04:00:00'}",
        (":13: cluster.memory: ", "got 4", "such as '8GB'"),
    ),
    "misspelt bound of the jobs": Broken(
        "stop: exit",
        "stop: exit\ncluster: {kind: slurm, jobs: {mxa: 2}}",
        (":13: cluster.jobs.mxa: unknown option; got 'mxa'; expected one of max, min; did you mean 'max'?",),
    ),
    "no workers": Broken(
        "stop: exit",
        "stop: exit\ncluster: {kind: local, workers: 0}",
        (":13: cluster.workers: ", "got 0", "at least 1"),
    ),
    "timeout 0": Broken("stop: exit", "stop: exit\ntimeout: 0", (":13: timeout: ", "got 0", "greater than 0")),
    "more steps than can be counted": Broken(
        TIMES, "times: [0, 1.0e+17]", (":8: dynamics.sgd_chain: more steps", "gamma=0.05", "at most 2^62")
    ),
    "steps of no length": Broken(
        GAMMA, "  gamma: [5.0e-324]", (":8: dynamics.sgd_chain: more steps than can be counted", "got inf")
    ),
    "no steps of the SDE": Broken(
        "  sgd_chain:", "  sde: {step: 1.0e-300}", (":8: dynamics.sde: more steps than can be counted",)
    ),
    "d beyond integers": Broken(
        D, "  d: [300, 9223372036854775808]", (":3: grid.d[1]: not a value of d; got 9223372036854775808", "less than")
    ),
    "too many weights": Broken(D, "  d: [300, 68719476737]", (":8: dynamics.sgd_chain: too many bytes a case",)),
    "huge whole number": Broken(D, f"  d: [{'9' * 5000}]", (":3: not YAML: a whole number of more than 308 digits",)),
    "tag of another type": Broken(
        "seeds: 4", "seeds: !!bool xyz", (":6: not YAML: not true or false: 'xyz'", "column 8")
    ),
    "tag of a date": Broken("seeds: 4", "seeds: !!timestamp abc", (":6: not YAML: ", "timestamp", "column 8")),
    "half a surrogate pair": Broken(
        "seeds: 4", 'seeds: 4\nname: "\\ud800"', (":7: not YAML: a text with", "'\\ud800'")
    ),
    "key of two lines": Broken("seeds: 4", 'seeds: 4\n"a\\nb": 1', (":7: a\\nb: unknown key; got 'a\\nb'",)),
    "plugin without a name": Broken("stop: exit", "stop: exit\nplugins: ['']", (":13: plugins: cannot be imported",)),
    "plugin of nobody": Broken("stop: exit", "stop: exit\nplugins: [~nobody/x.py]", (":13: plugins: ",)),
    "name of the clock": Broken(
        GAMMA, f"  clock: [1, 2]{DERIVED % 'clock/d'}", (":5: grid.clock: this name has another meaning",)
    ),
    "name of a group": Broken(
        GAMMA, f"  p1_k1: [1, 2]{DERIVED % 'p1_k1/d'}", (":5: grid.p1_k1: this name has another meaning",)
    ),
    "name that is no folder's": Broken(
        GAMMA, f"  {'x' * 101}: [1, 2]{DERIVED % ('x' * 101 + '/d')}", ("too long a name; expected at most 100 bytes",)
    ),
    "exits without thresholds": Broken(
        "thresholds: [0.01]\nstop: exit\n", "", (":11: analyses.exit_times: not recorded", "`thresholds`")
    ),
    "option of an analysis of another type": Broken(
        "analyses: [exit_times]",
        "analyses: {exit_times: {confidence: banana}}",
        (":13: analyses.exit_times.confidence: not a valid option", "got 'banana'; expected a number"),
    ),
    "figure of no value of an axis": Broken(
        "stop: exit",
        "stop: exit\nfigures: {exit_time_scaling: {where: {d: []}}}",
        (":13: figures.exit_time_scaling.where.d: no values of the axis", "one at least"),
    ),
    "too many workers": Broken(
        "stop: exit",
        "stop: exit\ncluster: {kind: local, workers: 1000000000}",
        (":13: cluster.workers: ", "at most 1024"),
    ),
    "memory that is no size": Broken(
        "stop: exit",
        "stop: exit\ncluster: {kind: local, memory_limit: banana}",
        (":13: cluster.memory_limit: ", "got 'banana'", "'2GB'"),
    ),
    "memory in which no worker starts": Broken(
        "stop: exit",
        "stop: exit\ncluster: {kind: local, memory_limit: 150MB}",
        (":13: cluster.memory_limit: ", "400 MB"),
    ),
    "dashboard nowhere": Broken(
        "stop: exit",
        "stop: exit\ncluster: {kind: local, dashboard_address: 'localhost:99999'}",
        (":13: cluster.dashboard_address: ", "HOST:PORT"),
    ),
    "timeout of ever": Broken(
        "stop: exit", "stop: exit\ntimeout: .inf", (":13: timeout: ", "got inf", "a finite number")
    ),
    "block of everything": Broken(
        "stop: exit",
        "stop: exit\ncluster: {kind: local, block_size: 1000000000000}",
        (":13: cluster.block_size: ", "at most 1e+06"),
    ),
    "name that is a path": Broken("stop: exit", "stop: exit\nname: ../x", (":13: name: ", "got '../x'", "letters")),
}


def written(directory: Path, broken: Broken) -> Path:
    assert SOUND.count(broken.line) == 1
    path = directory / "sweep.yaml"
    path.write_text(SOUND.replace(broken.line, broken.instead))
    return path


def said(path: Path, overrides: tuple[str, ...] = ()) -> str:
    with pytest.raises(InputError) as refused:
        load(path, overrides)
    return str(refused.value)


@pytest.mark.parametrize("case", BROKEN)
def test_broken_config_is_explained_in_one_line(case: str, tmp_path: Path) -> None:
    message = said(written(tmp_path, BROKEN[case]))
    assert message.startswith(str(tmp_path / "sweep.yaml"))
    assert "\n" not in message
    assert len(message) < 500
    for part in BROKEN[case].said:
        assert part in message, message
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.yaml"]


def test_what_is_wrong_with_several_analyses_and_figures_is_told_together(tmp_path: Path) -> None:
    """Each in a line with its place; what depends on something that is wrong is left out."""
    wrong = "analyses: {exit_time: {}}\nfigures:\n  risk_curve: {}\n  exits: {kind: line, y: exit_steps, hew: d}"
    message = said(written(tmp_path, Broken("analyses: [exit_times]", wrong, ())))
    figure, option, analysis = message.splitlines()
    assert ": figures.risk_curve: unknown figure; " in figure
    assert ": figures.exits.hew: unknown option" in option and "'hue'" in option
    assert ": analyses.exit_time: unknown analysis; " in analysis
    assert [int(line.split(":")[1]) for line in (figure, option, analysis)] == [15, 16, 13]


def test_figures_that_do_not_fit_are_told_together(tmp_path: Path) -> None:
    wrong = "figures: {one: {kind: line, y: risk, x: gama}, two: {kind: line, y: risk, hue: k}}\nseeds: 4"
    first, second = said(written(tmp_path, Broken("seeds: 4", wrong, ()))).splitlines()
    assert "figures.one.x: no such axis of numbers; got 'gama'" in first
    assert "figures.two.hue: no such axis to draw; got 'k'" in second


def test_names_of_no_field_are_told_together(tmp_path: Path) -> None:
    lines = said(written(tmp_path, Broken(GAMMA, "  N: [100]\n  learning_rate: [0.1]", ()))).splitlines()
    assert ["did you mean 'd'?" in lines[0], "did you mean 'gamma'?" in lines[1]] == [True, True]


def test_misspelt_keys_are_told_together(tmp_path: Path) -> None:
    lines = said(written(tmp_path, Broken("seeds: 4", "seed: 4\nfigure: []", ()))).splitlines()
    assert ["did you mean 'seeds'?" in lines[0], "did you mean 'figures'?" in lines[1]] == [True, True]


def test_a_cluster_without_a_kind_is_this_machine(tmp_path: Path) -> None:
    cluster = load(written(tmp_path, Broken("seeds: 4", "seeds: 4", ())), ["cluster.workers=3"]).cluster
    assert cluster is not None and (cluster.model_dump()["kind"], cluster.workers_here()) == ("local", 3)


def test_the_sound_config_is_sound(tmp_path: Path) -> None:
    assert load(written(tmp_path, Broken("seeds: 4", "seeds: 4", ()))).size == 8 * 4 + 4 * 4


@pytest.mark.rest
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"# nothing\n", "the file is empty"),
        (b"- 1\n- 2\n", "not a sweep; got [1, 2]; expected `name: value` lines"),
        (b"a: {3: 4}", ":1: a key must be a word; got '3'; expected `name: value`"),
        (b"a sweep", "not a sweep; got 'a sweep'"),
        (b"\xff\xfe\x00", ":1: cannot be read: not text in UTF-8"),
        (b"a: 1\nb: \xe9\n", ":2: cannot be read: not text in UTF-8"),
        (b"a: 1\nb: \0", ":2: not YAML: character number 0 is not allowed"),
        (b'a: "\\UFFFFFFFF"', "not YAML: "),
        (b"%YAML " + b"1" * 5000 + b".0\n---\na: 1", "not YAML: "),
        (b"a: &a [*a]\n", ":1: an alias that contains itself; got '*a'"),
        (b"grid: {d: " + b"[" * 1000, ":1: lists or mappings too deep; expected at most 32 levels"),
    ],
)
def test_file_that_holds_no_sweep(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_bytes(content)
    assert message in said(path)
    assert complete_run(path, [], tmp_path) is None  # commands ask this first, and then what is wrong with the file


def test_missing_file_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    sound = written(tmp_path, Broken("seeds: 4", "seeds: 4", ()))
    message = said(tmp_path / "swep.yaml")
    assert "no such file" in message
    assert f"did you mean {str(sound)!r}?" in message
    assert "cannot be read" in said(tmp_path)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("grid.d=[300, 0]", "override grid.d=[300, 0]: grid.d[1]: not a value of d; got 0"),
        ("grid.dd=[300]", "override grid.dd=[300]: grid.dd: unknown name"),
        ("seeds", "not an override; got 'seeds'; expected KEY=VALUE"),
        ("=3", "not an override; got '=3'"),
        ("grid.d=[300", "override grid.d=[300:1: not YAML"),
        ("seeds.x=3", "override seeds.x=3: seeds has no keys below it; got 4"),
        ("sedes=3", "override sedes=3: sedes: unknown key; got 'sedes'; expected one of"),
        (
            "gama=3",
            "override gama=3: gama: unknown key; got 'gama'; expected a key (`sweeplib list keys`), or below ",
        ),
        ("sedes.x.y=3", "override sedes.x.y=3: sedes: unknown key; got 'sedes'; expected one of"),
        ("grid.gamma[0]=3", "override grid.gamma[0]=3: grid.gamma[0]: unknown name"),
        ("dynamics.ode.rtol=1", "override dynamics.ode.rtol=1: dynamics.ode.rtol: "),
        ("grid.gamma=" + "1," * 20_000, "grid.gamma: too many values; got 20001; expected at most 20000: "),
        ("grid.gamma=" + "1," * 300_000, "grid.gamma: too many characters in an override; got 600011; "),
    ],
)
def test_override_is_named_where_it_is_at_fault(override: str, message: str, tmp_path: Path) -> None:
    assert said(written(tmp_path, Broken("seeds: 4", "seeds: 4", ())), (override,)).startswith(message)


def test_an_override_that_is_no_text_is_refused() -> None:
    with pytest.raises(InputError, match=r"not an override; got \{'seeds': 8\}; expected texts, as 'seeds=8'"):
        Override.__post_init__(SimpleNamespace(text={"seeds": 8}))


@pytest.mark.rest
def test_overrides_together_are_no_longer_than_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, Broken("seeds: 4", "seeds: 4", ()))
    many = ",".join(str(number / 1000) for number in range(1, 11_000))
    message = said(path, (f"grid.gamma={many}", f"times=0,{many}"))
    assert "too many keys and values, with those of all defaults" in message


@pytest.mark.rest
@pytest.mark.parametrize("override", ["grid.zz{}.a=1", "zz{}=1", "problem.zz{}={{a: 1}}"])
def test_thousands_of_overrides_are_refused_in_few_lines(override: str, tmp_path: Path) -> None:
    """30,000, as a script may write them, were copied 30,000 times: minutes."""
    path, began = written(tmp_path, Broken("seeds: 4", "seeds: 4", ())), time.process_time()
    lines = said(path, tuple(map(override.format, range(5000)))).splitlines()
    assert max(map(len, lines)) < 500
    assert len(lines) == 1 or (len(lines) == 6 and lines[-1] == "and 4,995 more")
    assert len(said(path, (f"name={'x' * 100_000}",))) < 500
    assert time.process_time() - began < 10


def test_linked_axes_take_the_place_of_fixed_and_swept_fields(tmp_path: Path) -> None:
    path = written(tmp_path, Broken("seeds: 4", "seeds: 4", ()))
    sweep = load(path, ("grid.zip=[{p: [1, 2], d: [300, 600], gamma: [0.1, 0.2]}]",))
    assert {axis.name: set(axis.linked) for axis in sweep.grid.axes} == {"p": {"d", "gamma"}, "Delta": set()}


def test_point_that_is_no_problem_is_named(tmp_path: Path) -> None:
    broken = Broken(PROBLEM, "problem: {p: 1, activation: square}", ())
    message = said(written(tmp_path, broken), ("grid.k=[1, 400]",))
    assert message.endswith(
        "no orthogonal teacher at gamma=0.05, d=300, Delta=0.0, k=400; got 400; expected at most d = 300"
    )


OF_COMMANDS = [
    ("run", "unknown key"),
    ("plan", "not YAML"),
    ("status", "p < 1 somewhere"),
    ("finalise", "expression that runs code"),
]


@pytest.mark.rest
@pytest.mark.parametrize(("command", "case"), slow_but(OF_COMMANDS, OF_COMMANDS[0]))
def test_command_line_ends_with_status_2_and_no_traceback(command: str, case: str, tmp_path: Path) -> None:
    path = written(tmp_path, BROKEN[case])
    results = tmp_path / "results"
    done = subprocess.run(
        [sys.executable, "-m", "sweeplib", command, str(path), "--results", str(results)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert all(part in done.stderr for part in BROKEN[case].said)
    assert not results.exists()


@pytest.mark.parametrize(
    ("code", "said_"),
    [
        ("def f(:", "SyntaxError: invalid syntax (bad.py, line 1)"),
        ("# \udce9", "SyntaxError: "),  # in latin-1, without saying so
        ("a = 1\0", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3 (bad.py, line 1)"),
        ("class Ends(BaseException): pass\nraise Ends('a\\nb')", "Ends: a b (bad.py, line 2)"),
    ],
)
def test_plugin_that_cannot_be_imported_is_named(code: str, said_: str, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(code, encoding="utf-8", errors="surrogateescape")
    message = said(written(tmp_path, Broken("stop: exit", "stop: exit\nplugins: [bad.py]", ())))
    assert said_ in message
    assert f"{tmp_path / 'sweep.yaml'}:13: plugins: cannot be imported: " in message


@pytest.mark.parametrize("registry", [ANALYSES, FIGURES])
def test_options_have_types_that_refuse_nonsense(registry: Mapping[str, Any]) -> None:
    for thing in registry.values():
        for key, default in thing.check({}).items():
            nonsense = [[{}], object(), *([math.nan] if isinstance(default, float) else [])]
            for value in nonsense:
                with pytest.raises(InputError, match=key):
                    thing.check({key: value})
