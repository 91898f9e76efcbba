"""The running process and its child processes: commands, interrupts, messages, descriptions of exceptions."""
