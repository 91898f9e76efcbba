"""A look at each worker before its first block: it must see the results, and have the driver's code and plugins."""

import asyncio
import os
import pickle
import socket
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from sweeplib.engine.base.late_modules import IMPORTING
from sweeplib.engine.cases import Case
from sweeplib.engine.code.plugins import import_plugins
from sweeplib.errors import InputError, SweeplibError

if TYPE_CHECKING:
    from distributed import Client

SECONDS_TO_SEE = 10.0
"""How long a network file system may take to show a folder that was made on another machine."""
SECONDS_TO_ANSWER = 30.0
"""How long a sweep waits for the answers of the first workers; of later ones it does not wait."""


Reasons = dict[str, str | None]
"""By the address of a worker, why it cannot take part; None if it can."""


@dataclass(frozen=True)
class Probe:
    """What a worker is asked: may it write to `folder`, can it import `plugins`, has it the identities of `cases`?

    cases : pickled pairs of a case and its identity by the driver's code.
    """

    folder: str
    plugins: tuple[str, ...]
    cases: bytes

    @classmethod
    def of(cls, folder: str, plugins: tuple[str, ...], cases: Iterable[tuple[Case, bytes]]) -> "Probe":
        """Return a probe; its cases are read in the worker when it has imported the plugins, which may define them."""
        return cls(folder, plugins, pickle.dumps(tuple(cases)))


async def answered(probe: Probe) -> str | None:
    """Return, on a worker, why it cannot take part in a sweep; None if it can."""
    try:
        return await _reason_here(probe)
    except OSError as error:  # an OSError is that of a lost worker for the one who asked
        return f"{socket.gethostname()}: {type(error).__name__}: {error}"


async def _reason_here(probe: Probe) -> str | None:
    """Return why this process cannot take part in a sweep; None if it can."""
    for _ in range(int(2 * SECONDS_TO_SEE)):
        if Path(probe.folder).is_dir():
            break
        await asyncio.sleep(0.5)
    else:
        return f"{socket.gethostname()} has no folder {probe.folder}"
    if not os.access(probe.folder, os.W_OK):
        return f"{socket.gethostname()} may not write to {probe.folder}"
    try:
        import_plugins(probe.plugins)
    except InputError as error:
        return f"{socket.gethostname()}: {error}"
    with IMPORTING:  # a thread of the worker may import the same for its first block
        differ = any(case.identity() != identity for case, identity in pickle.loads(probe.cases))
    if differ:
        return f"{socket.gethostname()} has another version of sweeplib or of the plugins than this command"
    return None


class Probes:
    """Asks the workers of a client, each once, beside other work; `say` gets a line for each that cannot take part."""

    def __init__(self, client: "Client", probe: Probe, say: Callable[[str], None]) -> None:
        """Ask nobody yet; `say` gets a line for each worker that cannot take part."""
        self._client, self._probe, self._say = client, probe, say
        self._addresses: set[str] = set()  # of all workers that were asked
        self._answers: list[Future[Reasons]] = []  # of those that were asked together, by a thread for each

    def look(self, workers: Iterable[str]) -> None:
        """Ask those of the `workers`, by address, that are new. SweeplibError if one that answered cannot take part.

        The first ones are waited for, since they may all be unfit.
        """
        new, first = set(workers) - self._addresses, not self._addresses
        if new:
            self._addresses |= new
            self._answers.append(Future())
            Thread(target=self._ask, args=(sorted(new), self._answers[-1]), daemon=True).start()
            if first:
                wait(self._answers, SECONDS_TO_ANSWER)
        ready = [answer for answer in self._answers if answer.done()]
        self._answers = [answer for answer in self._answers if answer not in ready]
        unfit = {address: why for answer in ready for address, why in answer.result().items() if why is not None}
        for address, why in sorted(unfit.items()):
            self._say(f"worker {address}: {why}")
        if unfit:
            problem = f"{len(unfit)} of {len(self._addresses)} workers cannot take part: {next(iter(unfit.values()))}"
            raise SweeplibError(f"{problem}; repair or end them, and run again: finished cases are stored")

    def _ask(self, workers: list[str], reasons: "Future[Reasons]") -> None:
        """Ask workers, by address, and give the future what they answer: the work of one thread."""
        try:
            answers = self._client.run(answered, self._probe, workers=workers, on_error="return")
        except (OSError, TimeoutError, ValueError, CancelledError):  # a lost scheduler is reported elsewhere
            answers = {}
        reasons.set_result({address: _reason(answer) for address, answer in answers.items()})


def _reason(answer: Any) -> str | None:
    """Return why a worker cannot take part, by what it answered: its text, or an exception.

    One that was lost while it was asked has no reason: it takes no part in any case.
    """
    if isinstance(answer, OSError | TimeoutError):
        return None
    return f"{type(answer).__name__}: {answer}" if isinstance(answer, BaseException) else answer
