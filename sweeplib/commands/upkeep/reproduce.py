"""One case of a sweep computed here, in this process, and compared with what is stored.

`say` gets lines for the user.
"""

import pdb
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from sweeplib.commands.upkeep.cases import ChosenCase, chosen_case, name_of
from sweeplib.commands.upkeep.recomputation import differences
from sweeplib.engine.cases import Case
from sweeplib.engine.design.design import Design
from sweeplib.engine.execution.progress import Steps
from sweeplib.engine.files.owners import others_in
from sweeplib.engine.process.terminal import echo
from sweeplib.engine.process.troubles import Trouble
from sweeplib.engine.records import Records
from sweeplib.engine.status import Status
from sweeplib.engine.storage.store.origins import taken_from
from sweeplib.engine.storage.store.outcomes import reason_in_words, reasons
from sweeplib.errors import SweeplibError


def reproduces(sweep: Design, directory: Path, name: str, *, debug: bool = False, say: Callable[[str], None]) -> bool:
    """Return whether the case `name`, computed here, ends as in the store, to the bit; `say` gets lines about it.

    With `debug` it runs in Python's debugger, which stops at its first line, and where an exception is raised. A case
    that is not in the store has nothing to compare with, and counts as reproduced if it ends. InputError if there is
    not exactly one such case.
    """
    chosen = chosen_case(sweep, directory, name)
    say(f"case {chosen.identity.hex()}: {name_of(chosen.coordinates)}")
    stored = reasons(directory, chosen.store.dynamics).get((chosen.identity, chosen.status), {})
    why = reason_in_words(stored)
    say(f"in the store: {chosen.status.name}" + (f", {why}" if why else ""))
    if chosen.status is Status.killed and stored.get("traceback"):
        say(stored["traceback"])
    if other_sweep := _other_sweep(chosen, directory):
        say(f"taken from {other_sweep}")
    # steps would write between the lines of the debugger
    try:
        with Steps(None if debug else sweep.name).step("computing the case"):
            records = _run_case(chosen.case, debug=debug)
    except (Exception, SystemExit) as error:
        echo(traceback.format_exc(), errors=True)
        if debug:
            _debugger().interaction(None, error.__traceback__)
        return _failed_alike(chosen, error, stored.get("exception"), say)
    status, excess = Status(int(records.status[0])), records.excess.get(0)
    say(f"here: {status.name}" + (f", {excess}" if excess else ""))
    if chosen.segment is None:
        say("nothing to compare with: the case is not computed yet")
        return True
    if chosen.status in (Status.failed, Status.killed, Status.timeout):
        return chosen.status is status
    different = differences(chosen.segment, chosen.row, records, 0)
    for difference in different.values():
        say(difference)
    if not different:
        say(f"the same bits: {', '.join(chosen.segment.variables)}")
    return not different


def _other_sweep(chosen: ChosenCase, directory: Path) -> str | None:
    """Return the sweep from which a case was taken, None if it was computed for this one."""
    if chosen.segment is None:
        return None
    return taken_from(directory, chosen.store.dynamics).get(chosen.segment.name)


def _run_case(case: Case, *, debug: bool) -> Records:
    """Return the records of a case; with `debug` it runs in Python's debugger."""
    if not debug:
        return case.simulator.run_openly(case)
    if not sys.stdin.isatty():
        sys.stderr.write("the debugger reads its commands from standard input\n")
    records = _debugger().runcall(case.simulator.run_openly, case)
    if records is None:
        raise SweeplibError("the debugger was left before the case ended")
    return records


def _debugger() -> pdb.Pdb:
    """Return Python's debugger, which executes the file .pdbrc of the working folder; not one that others wrote."""
    commands = Path(".pdbrc")
    why = commands.exists() and (others_in(Path()) or others_in(commands))
    if why:
        echo(f"{commands}: not executed: {why}", errors=True)
    debugger = pdb.Pdb(readrc=not why)
    debugger.reset()
    return debugger


def _failed_alike(chosen: ChosenCase, error: BaseException, stored: str | None, say: Callable[[str], None]) -> bool:
    """Say that a case raised an error here; return whether it failed by the same exception in the store.

    stored : the text of that exception, None if none is recorded.
    """
    raised = Trouble.from_exception(error).exception
    say(f"here: failed, {raised}")
    return chosen.status is Status.failed and raised == stored
