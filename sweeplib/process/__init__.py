"""The running process and those it starts: commands, interrupts, messages, what is told of exceptions."""
