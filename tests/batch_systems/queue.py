#!/usr/bin/env python3
"""Commands of four batch systems, chosen by the name of this file: jobs are processes of this machine.

The folder FAKE_QUEUE has a file for each job, with its process.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

QUEUE = Path(os.environ["FAKE_QUEUE"])
ANSWERS = {
    "sbatch": "Submitted batch job {}",
    "qsub": "Your job {} has been submitted",
    "bsub": "Job <{}> is submitted",
}


def submit(name: str, arguments: list[str]) -> None:
    if (QUEUE / "refused").exists():
        sys.exit((QUEUE / "refused").read_text())
    script = Path(arguments[-1]).read_text() if arguments else sys.stdin.read()
    number = 1 + len(list(QUEUE.glob("*.job")))
    (QUEUE / f"{number}.job").write_text(script)
    with (QUEUE / f"{number}.out").open("wb") as output:
        job = subprocess.Popen(
            ["bash", QUEUE / f"{number}.job"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    (QUEUE / f"{number}.pid").write_text(str(job.pid))
    sys.stdout.write(ANSWERS[name].format(number) + "\n")


def cancel(numbers: list[str]) -> None:
    for number in numbers:
        if runs(number):
            os.killpg(int((QUEUE / f"{number}.pid").read_text()), signal.SIGKILL)


def runs(number: str) -> bool:
    status = Path("/proc", (QUEUE / f"{number}.pid").read_text(), "stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


command = Path(sys.argv[0]).name
if command in ANSWERS:
    submit(command, sys.argv[1:])
elif command in {"scancel", "qdel", "bkill"}:
    cancel(sys.argv[1:])
elif (QUEUE / "silent").exists():
    sys.exit("error: unable to contact the controller")
else:
    sys.stdout.write("".join(f"{path.stem}\n" for path in QUEUE.glob("*.pid") if runs(path.stem)))
