"""The command `sweeplib`, also as `python -m sweeplib`; Ctrl-C is reported in one line from the start."""

from sweeplib.engine.process.command import command, whole_process


def main() -> None:
    """Run the command; its exit status ends the process."""
    with whole_process(), command():
        from sweeplib.commands.cli import app

        app(prog_name="sweeplib")


if __name__ == "__main__":
    main()
