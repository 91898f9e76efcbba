"""A table gives for each row what a function gives for that row alone, and calls it once for what it reads."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sweeplib.engine.base.table import Column, Reading, Table

VALUES = st.sampled_from([0, -0.0, 0.0, 1, 1.0, True, None, "a", "1", 2.5, (1.0, 1.0), 2**60])
NUMBERS = st.floats(-1e3, 1e3) | st.integers(-5, 5)
QUICK = settings(max_examples=60, deadline=None)


def table_of(**columns: list[Any]) -> Table:
    return Table({name: Column.of(items) for name, items in columns.items()}, len(next(iter(columns.values()))))


def texts(items: Any) -> list[str]:
    return list(map(repr, items))


@QUICK
@given(st.lists(VALUES), st.data())
def test_a_column_has_the_items(items: list[Any], data: st.DataObject) -> None:
    """Values with different texts, such as 0 and -0 or 1 and True, stay apart."""
    column = Column.of(items)
    assert len(column.values) == len(set(texts(items)))
    assert texts(column.items()) == texts(items) == texts(map(column.value, range(len(items))))
    rows = data.draw(st.lists(st.sampled_from(range(len(items))))) if items else []
    assert texts(column.at(np.array(rows, np.intp)).items()) == texts(items[row] for row in rows)
    assert texts(Column.joined([column, column.at(slice(2))]).items()) == texts(items + items[:2])


def branching(read: Reading) -> Any:
    if read("a") in (0, "a"):
        return read("a"), read("b")
    return (read("c"),) if read("b") else None


@QUICK
@given(st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=30))
def test_each_is_the_function_of_each_row(rows: list[tuple[Any, Any, Any]]) -> None:
    table = Table({name: Column.of([row[at] for row in rows]) for at, name in enumerate("abc")}, len(rows))
    expected = [branching(dict(zip("abc", row, strict=True)).__getitem__) for row in rows]  # type: ignore[arg-type]
    assert texts(table.column_of(branching).items()) == texts(expected)


def formula(read: Any) -> Any:
    if read("sign") > 0:
        return 3 * read("x") / read("d") - read("y") * 0.1
    return max(read("x"), read("y")) + read("x")


@QUICK
@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.sampled_from([-1, 1]), st.integers(1, 3)), max_size=30))
@example([(0.0, 0.0, -1, 1), (0.0, 0.0, -1, 1), (-0.0, 0.0, -1, 1)])
def test_numbers_have_the_bits_of_those_one_by_one(rows: list[tuple[Any, ...]]) -> None:
    names = ("x", "y", "sign", "d")
    table = Table({name: Column.of([row[at] for row in rows]) for at, name in enumerate(names)}, len(rows))
    expected = [float(formula(dict(zip(names, row, strict=True)).__getitem__)) for row in rows]
    assert table.numbers(formula).tobytes() == np.array(expected).tobytes()


def test_a_division_by_zero_raises_as_for_numbers() -> None:
    with pytest.raises(ZeroDivisionError):
        table_of(x=[1.0, 2.0], y=[1.0, 0.0]).numbers(lambda read: read("x") / read("y"))


def test_reductions_and_functions_of_numbers_are_evaluated_one_by_one() -> None:
    table = table_of(x=[1.0, 4.0, 9.0], y=[2.0, 3.0, 1.0])
    assert table.numbers(lambda read: np.max([read("x"), read("y")])).tolist() == [2.0, 4.0, 9.0]
    assert table.numbers(lambda read: math.sqrt(read("x"))).tolist() == [1.0, 2.0, 3.0]
    assert table.numbers(lambda read: float(f"{read('y')}")).tolist() == [2.0, 3.0, 1.0]


def test_a_formula_is_evaluated_once_for_what_it_decides_on() -> None:
    calls, rows = [], 10_000
    table = table_of(x=np.linspace(0.1, 1.0, rows).tolist(), p=[1, 2, 3, 4] * (rows // 4))

    def work(read: Any) -> Any:
        calls.append(1)
        return read("x") * 2.0 if read("p") > 2 else read("x")

    found = table.numbers(work)
    assert len(calls) <= 1 + 4
    assert found[:4].tolist() == [work(Reading(table, at, {})) for at in range(4)]


def test_a_function_is_called_once_for_what_it_reads() -> None:
    """A hundred thousand rows of three hundred shapes."""
    calls: list[int] = []
    shapes, values = [*range(300)] * 334, np.linspace(0.0, 1.0, 300 * 334).tolist()
    table = table_of(p=shapes, gamma=values)
    found = table.column_of(lambda read: calls.append(read("p")) or read("p") ** 2)
    assert found.array(int).tolist() == [p**2 for p in shapes]
    assert len(calls) == 301  # the first shows what is read


@pytest.mark.parametrize("rows", [0, 1])
def test_tables_of_one_row_and_of_none(rows: int) -> None:
    table = table_of(x=[2.0] * rows)
    assert table.column_of(lambda read: read("x")).items() == [2.0] * rows
    assert table.numbers(lambda read: read("x") + 1).tolist() == [3.0] * rows
    assert table.over(("x",), lambda columns, _: columns["x"]).items() == [2.0] * rows
    assert len(Table.joined([table, table])) == 2 * rows
    assert table.distinct(("x",))[0].tolist() == [0] * rows


def test_distinct_rows_of_more_combinations_than_there_are_numbers() -> None:
    rows = 400
    columns = {f"c{at}": [row * at % 97 / 7 for row in range(rows)] for at in range(1, 12)}
    first, codes = table_of(**columns).distinct(columns)
    whole = list(zip(*columns.values(), strict=True))
    assert [whole[at] for at in first.tolist()] == list(dict.fromkeys(whole))
    assert [whole[first[code]] for code in codes.tolist()] == whole
