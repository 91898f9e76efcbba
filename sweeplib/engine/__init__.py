"""What the engine asks of a simulator and gets from it: cases, variables, records and how runs ended.

`simulator` is the contract. `cases` computes the identities of cases; a simulator says what goes into them
(`networks.simulation.cases`, `functions.cases`).
"""
