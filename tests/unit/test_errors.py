"""The nearest valid choice and the list of choices in the message of an InputError."""

import pytest

from sweeplib.errors import InputError
from sweeplib.networks.problem import PARAMETERS, synonyms


@pytest.mark.parametrize(
    ("value", "choices", "said"),
    [
        (0.2, ["0.1", "0.3", "1.0"], "did you mean 0.3?"),
        (305, ["300", "3050"], "did you mean 300?"),
        (-0.5, ["-0.4", "0.5"], "did you mean -0.4?"),
        (".031", ["0.03", "0.3"], "did you mean '0.03'?"),
        ("sdg", ["sgd", "ode"], "did you mean 'sgd'?"),
        ("ODE", ["sde", "ode"], "did you mean 'ode'?"),
        ("Risk curves", ["risk_curves", "risk_fans"], "did you mean 'risk_curves'?"),
        (100.0, ["0.1", "0.3"], None),
        ("tanh", ["0.1", "0.3"], None),
    ],
)
def test_the_nearest_choice_is_suggested(value: object, choices: list[str], said: str | None) -> None:
    message = str(InputError("not a value", value=value, choices=choices))
    assert (said in message) if said else ("did you mean" not in message)


def test_a_list_leaves_out_no_few_choices() -> None:
    names = [f"observable_{number:02d}" for number in range(17)]  # the last one is beyond the longest list
    few = [*names, *(f"observable_{number}" for number in range(17, 20))]
    for value in ("x", "observable_1"):
        assert "observable_19" in str(InputError("unknown", value=value, choices=few))
    assert str(InputError("unknown", value="x", choices=[*few, "observable_20"])).endswith(" and 5 more")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("learning_rate", "gamma"),
        ("lr", "gamma"),
        ("γ", "gamma"),
        ("eta", "gamma"),
        ("Δ", "Delta"),
        ("Label Noise Variance", "Delta"),
        ("N", "d"),
        ("input-dimension", "d"),
    ],
)
def test_a_parameter_is_suggested_for_its_symbol_and_its_label(word: str, meant: str) -> None:
    """In place of a list of which most would be left out."""
    message = str(InputError("unknown", value=word, choices=PARAMETERS, synonyms=synonyms()))
    assert message == f"unknown; got {word!r}; did you mean {meant!r}?"
