"""CSV sheets as spreadsheets write them, and what their numbers mean."""

import re
from random import Random

import pytest

import botorch_ext as bx
from botorch_ext.domains.choices import Fixed
from botorch_ext.exceptions import TableError
from botorch_ext.studies.cell_values import CellValues, last_place
from botorch_ext.studies.csv_sheets import Sheet, written

POINTS, COMMAS = CellValues(False, False, False), CellValues(True, False, False)


def read(tmp_path, content):
    path = tmp_path / "sheet.csv"
    path.write_bytes(content)
    return Sheet.read(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_one_table_however_it_was_saved(tmp_path, encoding, delimiter, end):
    rows = [["time [µs]", "name", ""], ["1", "Öl", ""], ["", "", ""], ["2", "", ""]]
    text = end.join(delimiter.join(row) for row in rows)
    sheet = read(tmp_path, text.encode(encoding))
    assert sheet.heads == ["time [µs]", "name"] and sheet.delimiter == delimiter
    assert [(row.line, row.cells) for row in sheet.rows] == [(2, ["1", "Öl"]), (4, ["2", ""])]


def test_a_first_line_that_names_the_separator(tmp_path):
    sheet = read(tmp_path, b"sep=;\r\na;b,c\r\n1;2\r\n")
    assert sheet.heads == ["a", "b,c"] and sheet.rows[0].cells == ["1", "2"]


def test_quoted_cells_have_separators_and_lines_in_them(tmp_path):
    sheet = read(tmp_path, b'"a, b",c\n"1\n2","say ""hi"""\n')
    assert sheet.heads == ["a, b", "c"] and sheet.rows[0].cells == ["1\n2", 'say "hi"']


def test_a_last_column_without_a_name_must_be_empty(tmp_path):
    assert read(tmp_path, b"a,b,,\n1,2,,\n").heads == ["a", "b"]
    assert read(tmp_path, b",a,b\n0,1,2\n").heads == ["", "a", "b"]  # as pandas writes its index
    for head in (b"a,b,,", b"a,b"):
        with pytest.raises(TableError, match="line 2 has 4 cells, and the first line 2: is there"):
            read(tmp_path, head + b"\n1,2,,x\n")


@pytest.mark.parametrize("decimal_comma", [False, True])
def test_what_is_written_is_read_back(tmp_path, decimal_comma):
    random, signs = Random(4), "=+-@;,\"'\tµ°\u3042 x7.\uff1d"
    rows = [
        (
            random.choice([random.uniform(-1, 1) * 10.0 ** random.randint(-300, 300), 0.1, -0.0]),
            random.randint(-(2**53), 2**53),
            f"x{''.join(random.choices(signs, k=5))}x"[random.randint(0, 1) :],
        )
        for _ in range(300)
    ]
    rows = [(real, whole, text.strip()) for real, whole, text in rows]
    path = tmp_path / "sheet.csv"
    text = written(["a", "b", "c"], rows, decimal_comma)
    path.write_text(text, encoding="utf-8-sig", newline="")
    sheet = Sheet.read(path)
    choices = {"c": bx.Choice([text for _, _, text in rows])}
    how = CellValues.of(sheet, {"a": 0, "b": 1, "c": 2}, choices)
    for row, (real, whole, text) in zip(sheet.rows, rows, strict=True):
        assert how.number(row.cells[0]) == real and how.number(row.cells[1]) == whole
        assert how.value(row.cells[2], bx.Choice([text, "another"])) == text
        assert not row.cells[2].startswith(("=", "+", "-", "@", "\uff1d"))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(("61.5", 61.5), ("61,5", 61.5), ("-0,5", -0.5), ("1e-3", 0.001), ("1,5E-03", 0.0015)),
        *((",5", 0.5), ("5,", 5.0), ("+7", 7.0), ("\u22122", -2.0), ("12345,678", 12345.678)),
    ],
)
def test_numbers(text, number):
    assert COMMAS.number(text) == number


@pytest.mark.parametrize(
    "text",
    ["1.234,5", "1,234.5", "1 234", "0x10", "1_000", "inf", "nan", "5 %", "1,2,3", "--1", "."],
)
def test_texts_that_are_no_numbers(text):
    with pytest.raises(ValueError, match="must be a number, got"):
        COMMAS.number(text)


@pytest.mark.parametrize(
    ("content", "number"),
    [
        (b"a,b\n1.234,7\n", 1.234),
        (b'a,b\n"1,234",7\n', "a decimal point where commas separate cells"),
        (b"a;b\n1,234;7\n", 1.234),
        (b"a;b\n1,234;7,5\n", 1.234),
        (b"a;b\n1,234;7.5\n", "got 1,234, which is either 1.234 or 1234: write 1234 or 1.234"),
        (b"a;b\n1.234;7\n", "got 1.234, which is either 1.234 or 1234: write 1234 or 1,234"),
        (b"a;b\n1.234;2.345\n", "must not be ambiguous, got 1.234"),
        (b"a;b\n1.234;7,5\n", "must not be ambiguous, got 1.234"),
        (b"a;b\n1.234;7.5\n", 1.234),
        (b"a;b\n1.234;0.125\n", 1.234),
        (b"a;b\n1.234;7.5;7,5\n".replace(b"a;b", b"a;b;c"), "must not be ambiguous, got 1.234"),
        (b"a;b\n1.2340;7\n", 1.234),
        (b"a;b;kind\n1,234;7;2.5\n", 1.234),
        (b"a\n1.234\n2.345\n", 1.234),
        (b"a\n1,234\n2,345\n", 1.234),
        ("a;b\n1.234;\u22127.5\n".encode(), 1.234),
        ("a;b\n1,234;\u22127.5\n".encode(), "must not be ambiguous, got 1,234"),
    ],
)
def test_what_may_be_a_thousand_is_refused_unless_the_sheet_decides(tmp_path, content, number):
    sheet = read(tmp_path, content)
    places = {name: place for place, name in enumerate(sheet.heads)}
    how = CellValues.of(sheet, places, {"kind": bx.Choice(["2.5", "3.5"])})
    if isinstance(number, float):
        assert how.number(sheet.rows[0].cells[0]) == number
    else:
        with pytest.raises(ValueError, match=re.escape(number)):
            how.number(sheet.rows[0].cells[0])


@pytest.mark.parametrize(
    ("text", "size"),
    [("3.25", 0.01), ("3,25", 0.01), ("40", 1.0), ("2.5e-2", 0.001), ("1e\u22125", 1e-5)],
)
def test_the_last_place_of_a_number(text, size):
    assert last_place(text) == pytest.approx(size)


def test_choices_are_texts_numbers_and_truth_values():
    mixed = bx.Choice(["water", 5, 2.5, True, "-x"])
    for text, value in (("water", "water"), ("5", 5), ("5,0", 5), ("2,5", 2.5), ("True", True)):
        read = COMMAS.value(text, mixed)
        assert read == value and type(read) is type(value)
    assert COMMAS.value("'-x", mixed) == COMMAS.value("-x", mixed) == "-x"
    assert COMMAS.value("oil", mixed) == "oil"
    assert COMMAS.value("3", Fixed(3)) == 3
    switch = bx.Choice([True, False])
    for text, value in (("TRUE", True), ("FALSE", False), ("true", True), ("False", False)):
        assert POINTS.value(text, switch) is value
    assert POINTS.value("1", switch) == "1" and POINTS.value("TRUE", bx.Choice(["TRUE", True])) == (
        "TRUE"
    )
