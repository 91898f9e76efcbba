"""Answers to a precision: a sweep that adds rows until its questions are answered.

A question names a variable of an analysis, how well it is wanted, and what may be added for it:

    answers:
      exits: {of: exit_times, variable: exit_steps_mean, to: 1 %, refine: seeds}
      gamma_opt: {of: optimal_learning_rate, to: 2 %, refine: {gamma: [0.02, 2]}, at: {p: [1, 4]}, budget: 50000}

`sweeplib sweep FILE` runs the grid of the file, round 0, and then rounds: the analysis of all complete rows says how
far each answer is from its precision, proposers ask for rows and seeds, which are computed as any cases of the sweep.
`sweeplib answer FILE` does the rounds alone and shows the answers. From Python:

    sweep = sweeplib.Sweep(..., answers={"exits": {"of": "exit_times", "variable": "exit_steps_mean", "to": "1 %"}})
    ds = sweep.run()
    print(sweep.answers)

What a round decides depends on the config and the results of the rows before it, on no clock and on no order: after a
crash the same rows are computed. Decisions are written into `answers.json` when they are made, and are read afterwards.
An answer counts as given only if its interval, which has its nominal coverage although the run ended because of its
width, is as narrow as was asked; otherwise it says what is missing, why, and how many cases that would take.
"""

from sweeplib.analysis.answers.answer import Answer, State
from sweeplib.analysis.answers.proposer import PROPOSERS, Proposer, proposer_of
from sweeplib.analysis.answers.rounds import run_rounds
from sweeplib.analysis.answers.table import rows_asked
from sweeplib.engine.base.registry import import_modules
from sweeplib.engine.design.questions import Question, Row

__all__ = [
    "PROPOSERS",
    "Answer",
    "Proposer",
    "Question",
    "Row",
    "State",
    "proposer_of",
    "rows_asked",
    "run_rounds",
]

import_modules(f"{__name__}.proposers", [f"{__path__[0]}/proposers"])
