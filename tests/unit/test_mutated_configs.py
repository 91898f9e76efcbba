"""Loading any config takes at most two seconds and 500 MB, and raises nothing but an InputError."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from mutations import EVERYTHING, MEGABYTES, SECONDS, found, mutated, sources

from sweeplib.config import load
from tests.tiers import slow_but

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


def changed(line: str, instead: str) -> str:
    assert EVERYTHING.count(line) == 1
    return EVERYTHING.replace(line, instead)


D, SEEDS, WHEN = (
    "d: {geomspace: [100, 10000, 3]}",
    "seeds: {range: [0, 8]}",
    "when: p * d < 1e6, where: {d: [100, 1000]",
)
LARGE = changed(D, "d: {range: [100, 900100, 10]}")
WIDER = changed("kappa: {linspace: [0, 0.3, 4]}", "kappa: {linspace: [0, 0.3, 80]}").replace(
    D, "d: {range: [100, 3100]}"
)
SERIES = [f"hermite(0, {n})" for n in range(1, 900)]

BOMBS: dict[str, tuple[str, str | None]] = {
    "billions of aliases": (LAUGHS + EVERYTHING, "too many keys and values"),
    "aliases of a long text": (EVERYTHING + f"x: &x {'x' * 9000}\ny: [{'*x, ' * 900}]", "too many characters"),
    "rounding to no digits": (
        changed("p: round(p0 * d**kappa)", 'p: "round(5, -20000000)"'),
        "not a finite number: `round(5, -20000000)`",
    ),
    "seeds": (changed(SEEDS, "seeds: 200000000"), "seeds: not a number of seeds"),
    "many seeds": (changed(SEEDS, "seeds: 100000"), None),
    "times": (changed("linspace: [0, 4, 9]", "linspace: [0, 4, 1000000000]"), "wrong number of values"),
    "many times": (changed("linspace: [0, 4, 9]", "linspace: [0, 4, 99999]"), None),
    "values": (LARGE.replace("900100, 10]", "900100, 1]"), "grid.d.range: wrong number of values"),
    "values of all axes": (LARGE.replace("0.3, 4]", "0.3, 11000]"), "grid: too many values of all axes; got 101006"),
    "logspace": (LARGE.replace("range: [100, 900100, 10]", "logspace: [2, 9, 99000]"), "grid.d[1]: not a value of d"),
    "points": (LARGE.replace("0.3, 4]", "0.3, 9000]"), "grid: too many points; got 2430000000"),
    "cases": (LARGE.replace(SEEDS, "seeds: 1000"), "grid: too many cases"),
    "when never true": (WIDER.replace(WHEN, "when: kappa < 0, where: {rate: [0.1]"), "true at none of 20000 points"),
    "where": (LARGE.replace("d: [100, 1000]", "d: {range: [100, 900100, 10]}"), "where.d.range: wrong number"),
    "name": (changed("name: everything", f"name: {'x' * 10_000_000}"), "file too large"),
    "deep": ("a: " + "[" * 100_000, "too deep"),
    "long list": (changed("{linspace: [0, 4, 9]}", str([i / 19_000 for i in range(19_000)])), None),
    "long list of nonsense": (changed("pair_by: [seed, d]", f"pair_by: {['dd'] * 19_000}"), "pair_by[0]"),
    "long word": (changed("activation: erf, D", f"activation: {'x' * 400_000}, D"), "unknown activation"),
    "activations": (
        changed(", teacher_activation: erf", "").replace("grid:\n", f"grid:\n  teacher_activation: {SERIES}\n"),
        "too many pairs of activations",
    ),
    "wide case": (changed("p0: 2,", "p0: 100000,").replace("when: p * d < 1e6, ", ""), "too many bytes a case"),
}


@pytest.fixture(scope="module")
def _sound(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The config that is mutated is valid, and all files that loading imports exist."""
    path = tmp_path_factory.mktemp("sound") / "sound.yaml"
    for text in sources():
        path.write_text(text)
        load(path)


@pytest.mark.parametrize("seed", slow_but(range(7), 0))
@pytest.mark.usefixtures("_sound")
def test_a_mutated_config_is_loaded_or_refused_in_few_lines(seed: int, tmp_path: Path) -> None:
    generator, texts = random.Random(seed), sources()
    for _ in range(25):
        content = mutated(texts, generator)
        fault = found(content, tmp_path).fault
        assert fault is None, (fault, content)


@pytest.mark.slow
def test_no_config_takes_long_or_much_memory(tmp_path: Path) -> None:
    """Each config is loaded in a child of one process, which has imported what loading needs."""
    for number, (text, _) in enumerate(BOMBS.values()):
        (tmp_path / f"{number}.yaml").write_text(text)
    command = [sys.executable, "-m", "mutations", "--each", *(f"{number}.yaml" for number in range(len(BOMBS)))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=_environment())
    for (name, (_, said)), (message, seconds, megabytes) in zip(BOMBS.items(), json.loads(done.stdout), strict=True):
        assert message.startswith("loaded") if said is None else said in message, (name, message)
        assert seconds < SECONDS and megabytes < MEGABYTES, (name, seconds, megabytes)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 105))
def test_a_thousand_mutated_configs(seed: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mutations", "1000", str(seed), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=_environment())
    told = json.loads(done.stdout)
    assert told["faults"] == []
    assert told["megabytes"] < MEGABYTES


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONSAFEPATH": "1"}
