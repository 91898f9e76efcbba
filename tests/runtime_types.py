"""The type checker of tests: beartype, to whom an int is a float, as it is to static checkers (PEP 484)."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
