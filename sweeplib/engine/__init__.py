"""What the engine asks of a simulator and gets from it: cases, variables, records and how runs ended."""
