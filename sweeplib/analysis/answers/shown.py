"""The answers of a sweep for a reader: lines of a summary, rows of a table."""

import math
from pathlib import Path
from typing import Any

from sweeplib.analysis.answers.answer import Answer, State, decimal
from sweeplib.engine.design.design import Design
from sweeplib.engine.storage.records.rounds import Rounds, rounds_of

MOST_LINES = 12


def answers_of(sweep: Design, directory: Path) -> list[Answer]:
    """Return the answers after the last complete round in a sweep's folder; none before the first one."""
    return [Answer.of(record) for record in rounds_of(sweep, directory).answers]


def answer_lines(sweep: Design, directory: Path) -> list[str]:
    """Return how many questions of a sweep are answered, and its answers; those that are missing come first."""
    if not sweep.questions:
        return []
    rounds = rounds_of(sweep, directory)
    answers = sorted(map(Answer.of, rounds.answers), key=lambda answer: answer.state is State.given)
    lines = [f"  {answer.line()}" for answer in answers]
    more = [f"  and {len(lines) - MOST_LINES} more, in {directory / 'answers.json'}"] * (len(lines) > MOST_LINES)
    return [summary_line(rounds), *lines[:MOST_LINES], *more]


def summary_line(rounds: Rounds) -> str:
    """Return in one line how many answers are given, and what follows."""
    if not rounds.answers:
        return "answers: none before the first round is complete"
    count = sum(record["state"] == State.given for record in rounds.answers)
    rows = rounds.rows[-1] if rounds.rows else ()
    number, points = len(rounds.rows), f"{len(rows):,} point{'' if len(rows) == 1 else 's'}"
    after = f"after {number} round{'s' * (number != 1)}" if rounds.ended else f"round {number} adds to {points}"
    return f"answers: {count} of {len(rounds.answers)} given, {after}"


def tables(sweep: Design, directory: Path) -> dict[str, dict[str, Any]]:
    """Return the tables of the answers of a sweep, and of the rows of its rounds; none if it asks nothing."""
    if not sweep.questions:
        return {}
    rounds = rounds_of(sweep, directory)
    answers = {"Answers, each with its precision, or what is missing": cells(list(map(Answer.of, rounds.answers)))}
    return answers | ({"Rows that rounds asked for": round_cells(rounds)} if rounds.rows else {})


def round_cells(rounds: Rounds) -> dict[str, Any]:
    """Return how many points each round asked for, by reason, and the seeds that they were to have."""
    seeds_by_reason: dict[tuple[int, str], list[int]] = {}
    for number, rows in enumerate(rounds.rows, 1):
        for row in rows:
            seeds_by_reason.setdefault((number, row.reason), []).append(row.seeds)
    lines = [[number, reason, len(seeds), _between(seeds)] for (number, reason), seeds in seeds_by_reason.items()]
    return {"headings": ("round", "reason", "points", "seeds"), "rows": lines}


def _between(seeds: list[int]) -> str:
    low, high = min(seeds), max(seeds)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def cells(answers: list[Answer]) -> dict[str, Any]:
    """Return what a table of answers shows, as plain values."""
    headings = ("question", "at", "value", "95 % interval", "half width", "asked", "answer")
    rows = [
        [
            answer.question,
            answer.where,
            decimal(answer.value, 4) if math.isfinite(answer.value) else "",
            answer.interval,
            decimal(answer.half_width, 2) if answer.interval else "",
            decimal(answer.wanted, 2) if math.isfinite(answer.wanted) else "",
            answer.state.value if answer.state is State.given else f"{answer.state.value}: {answer.missing()}",
        ]
        for answer in answers
    ]
    return {"headings": headings, "rows": rows}
