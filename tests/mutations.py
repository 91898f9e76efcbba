"""Thousands of configs with errors, and the outcome of loading each of them.

`python -m mutations COUNT SEED FOLDER` prints the faults as JSON, and the largest time and memory;
`python -m mutations --each FILE ...` prints the message, time and memory of loading each of the files.
"""

import copy
import json
import random
import re
import resource
import sys
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from sweeplib.config import load
from sweeplib.errors import InputError

SECONDS, MEGABYTES = 5.0, 500
"""Of a processor: 2 s of one that has nothing else to do."""
CONFIGS = Path(__file__).parents[1] / "config"

EVERYTHING = """
name: everything
problem: {k: 1, activation: erf, Delta: 0.1, p0: 2, start: sphere, a: 1.0, teacher_activation: erf}
grid:
  d: {geomspace: [100, 10000, 3]}
  kappa: {linspace: [0, 0.3, 4]}
  zip: [{rate: [0.1, 0.2, 0.4], second_layer_rate: [0, 0.5, 1]}]
derive: {p: round(p0 * d**kappa), gamma: "rate * p if d > 10 else 1"}
seeds: {range: [0, 8]}
root_seed: 3
pair_by: [seed, d]
dynamics:
  sgd_chain: {when: p * d < 1e6, where: {d: [100, 1000], seed: [0, 1, 2]}}
  ode: {rtol: 1e-6, atol: 1e-8, max_steps: 1000, finite_d: false}
  sde: {step: 1.0, samples: 2}
  sgd: {weights: float32, when: d < 200}
times: {values: {linspace: [0, 4, 9]}, scale: p/gamma}
thresholds: [0.01, 0.1]
stop: end
observables: [risk, overlap_M, student_norm]
analyses:
  exit_times: {confidence: 0.9, max_lost: 0.1}
  deviation_scaling: {reference: ode, until: 3, resamples: 100, random_seed: 1}
  limits: {candidates: [ode], most_spread: 0.5}
  law_agreement: {reference: sgd_chain, seeds: shared}
  risk_floor: {last: 0.5}
figures:
  risk_curves: {where: {kappa: 0, rate: 0.1}, panel: d}
  exit_time_scaling: {panel: rate, hue: threshold, where: {kappa: 0}}
  risk_fans: {runs: 3}
cluster: {kind: local, workers: 2, memory_limit: 2GB, dashboard_address: ":0", block_size: 8}
timeout: 600
plugins: []
"""


class Raw(str):
    """Text that is written into a file as it is, not as a YAML text."""

    __slots__ = ()


NASTY: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30, 10**307),
    *(0.5, 5e-324, 1e-300, 1e-17, 1e17, 1e308, -1e308, -0.0, float("nan"), float("inf"), -float("inf")),
    *("", " ", "x" * 1000, "é", "\u202e", "a\nb", "\x07", "1", "nan", "1e999", "../..", "~nobody/x.py", "no_such.py"),
    *("d", "gamma", "seed", "clock", "p1_k1", "risk", "coordinates", "banana", "10.0.0.1", "hermite(1, 1e999)"),
    *("d < 0", "1/0", "9**9**9", "round(d, -20000000)", "d**d**d", "-" * 400 + "d", "(" * 300, "d and", "d > 1e400"),
    *([], {}, [[]], [{}], [None], [float("nan")], [0, 0], [1, "a", None], list(range(3000)), {"a": 1}, {"kind": 1}),
    *({"linspace": [0, 1, 10**9]}, {"linspace": [1e-300, 1e308, 100_000]}, {"linspace": [1, 2]}),
    *({"logspace": [-1e300, 1e300, 5]}, {"logspace": [-3, 2, 100_000]}, {"geomspace": [5e-324, 1e308, 100_000]}),
    *({"range": [0, 1, 1e-9]}, {"range": [0, 1e300]}, {"range": [0, 1, 0]}, {"range": [0, 90_000]}),
    *({"values": {"values": [1]}}, {"where": {"d": []}}, {"when": 3}),
    *map(Raw, ("!!bool xyz", "!!timestamp abc", "!!binary =", "!!int x", "!!float 1e999", "!!null x", "!!set {a, b}")),
    *map(Raw, ("!!python/object/apply:os.getcwd []", "!x y", "*nothing", "&a [*a]", "&a {b: *a}", "[1, 2", "{a", "}")),
    *map(
        Raw, ('"\\ud800"', '"\\0"', '"\\UFFFFFFFF"', "? [a]", "%", "@x", "`", "|\n  text", "'", "\t", "--- a", "<<: 1")
    ),
    *map(
        Raw, ("1" * 5000, "-" + "9" * 400, "1" * 400 + ".0", "[" * 100, "[" * 40 + "]" * 40, "0x1F", "1_0_", "1e99999")
    ),
]


class Found(NamedTuple):
    """The outcome of loading a config: the fault, None if there is none, and the seconds it took."""

    fault: str | None
    seconds: float


def sources() -> list[str]:
    """Return the texts of the configs that are mutated."""
    return [EVERYTHING, *(path.read_text() for path in sorted(CONFIGS.glob("*.yaml")))]


def mutated(texts: list[str], generator: random.Random) -> bytes:
    """Return a config with a few changes in its text or in its data."""
    text = generator.choice(texts)
    if generator.random() < 0.3:
        return _bytes_changed(text.encode(), generator)
    data = yaml.safe_load(text)
    for _ in range(generator.choice((1, 1, 1, 2, 4))):
        _change(data, generator)
    return _written(data)


def found(content: bytes, folder: Path) -> Found:
    """Return the outcome of loading a config with this content: nothing, an error of few lines, or a fault."""
    path = folder / "mutated.yaml"
    path.write_bytes(content)
    start = time.process_time()
    try:
        load(path)
        fault = None
    except InputError as error:
        fault = _fault_of(str(error), path)
    except BaseException as error:
        fault = f"{type(error).__name__}: {error}"
    seconds = time.process_time() - start
    return Found(fault or (f"took {seconds:.1f} s" if seconds > SECONDS else None), seconds)


def report(count: int, seed: int, folder: Path) -> dict[str, Any]:
    """Return the faults of `count` mutated configs, each with its text, and the largest time and memory."""
    generator, texts = random.Random(seed), sources()
    for text in texts:  # imports what loading needs, which takes longer than all that is measured
        found(text.encode(), folder)
    faults, slowest = [], 0.0
    for _ in range(count):
        content = mutated(texts, generator)
        fault, seconds = found(content, folder)
        slowest = max(slowest, seconds)
        if fault is not None:
            faults.append((fault, content.decode(errors="backslashreplace")))
    return {"faults": faults, "slowest": slowest, "megabytes": megabytes()}


def megabytes() -> float:
    """Return the largest memory use of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _fault_of(message: str, path: Path) -> str | None:
    lines = message.split("\n")
    told = lines[:-1] if len(lines) > 1 and re.fullmatch("and [0-9,]+ more", lines[-1]) else lines
    if not all(line.startswith(str(path)) for line in told):
        return f"does not begin with the file: {message}"
    if len(told) > 5 or not all(map(str.isprintable, lines)):
        return f"not a line for each thing: {message!a}"
    return f"too long, {len(message)}: {message}" if max(map(len, lines)) > 1500 else None


def _bytes_changed(text: bytes, generator: random.Random) -> bytes:
    changed = bytearray(text)
    for _ in range(generator.choice((1, 1, 2, 5))):
        at, end = sorted(generator.randrange(len(changed) + 1) for _ in range(2))
        end = min(end, at + 200)
        match generator.randrange(6):
            case 0:
                changed[at:at] = bytes([generator.randrange(256)])
            case 1:
                del changed[at:end]
            case 2:
                changed[at:at] = changed[at:end]
            case 3:
                changed[at:at] = generator.choice(
                    (b"\0", b"\t", b"\xff", b"\xed\xa0\x80", b"\r", b"\n", b"- ", b": ", b"&a ")
                )
            case 4:
                changed[at : at + 1] = bytes([changed[at] ^ 1 << generator.randrange(8)]) if at < len(changed) else b"x"
            case 5:
                lines = bytes(changed).splitlines(keepends=True)
                generator.shuffle(lines) if generator.random() < 0.2 else lines.append(generator.choice(lines))
                changed = bytearray(b"".join(lines))
    return bytes(changed)


def _change(data: Any, generator: random.Random) -> None:
    places = list(_places(data))
    if not places:
        return
    inside, key = generator.choice(places)
    match generator.randrange(6):
        case 0:
            del inside[key]
        case 1 if isinstance(inside, dict):
            name = generator.choice(
                ("x", "clock", "p2_k1", "é", "risk", "d", "seed", "zip", "", "a\nb", "x" * 300, 3, None)
            )
            inside[name] = copy.deepcopy(inside[key])
        case 2:
            other, place = generator.choice(places)
            if place in other if isinstance(other, dict) else place < len(other):
                inside[key], other[place] = copy.deepcopy(other[place]), copy.deepcopy(inside[key])
        case 3:
            inside[key] = generator.choice(([inside[key]], {"values": inside[key]}, {str(key): inside[key]}))
        case _:
            inside[key] = copy.deepcopy(generator.choice(NASTY))


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in list(items)[:50]:
        yield data, key
        yield from _places(value)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(Raw, lambda dumper, raw: dumper.represent_str(f"<<{NASTY.index(raw)}>>"))


def _written(data: Any) -> bytes:
    text = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    for number, nasty in enumerate(NASTY):
        if isinstance(nasty, Raw):
            text = text.replace(f"<<{number}>>", nasty)
    return text.encode()


def each(paths: list[Path]) -> list[tuple[str, float, float]]:
    """Print the message of loading each config, and its processor seconds and megabytes."""
    load(CONFIGS / "quickstart.yaml")
    with get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        return pool.map(_loaded, paths, chunksize=1)


def _loaded(path: Path) -> tuple[str, float, float]:
    start = time.process_time()
    try:
        load(path)
        said = "loaded"
    except InputError as error:
        said = str(error)
    return said, time.process_time() - start, megabytes()


if __name__ == "__main__":
    if sys.argv[1] == "--each":
        sys.stdout.write(json.dumps(each(list(map(Path, sys.argv[2:])))))
    else:
        sys.stdout.write(json.dumps(report(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))))
