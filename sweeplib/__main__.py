"""The command `sweeplib`, also as `python -m sweeplib`: Ctrl-C ends it in one line from its first moment on."""

from sweeplib.process.command import command, whole_process


def main() -> None:
    """Run the command as a process of its own."""
    with whole_process(), command():
        from sweeplib.cli import app

        app(prog_name="sweeplib")


if __name__ == "__main__":
    main()
