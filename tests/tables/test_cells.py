"""CSV sheets as spreadsheets write them, and what the texts of their cells mean."""

import datetime
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import botorch_ext as bx
from botorch_ext.exceptions import TableError
from botorch_ext.studies.cell_values import decimal_of, number, value
from botorch_ext.studies.sheets import Sheet, written
from tests.tables.spaces import text_of


def read(tmp_path, content, **options):
    path = tmp_path / "sheet.csv"
    path.write_bytes(content)
    return Sheet.read(path, **options)


@given(
    cells=st.lists(st.sampled_from(["1,5", "0;5", "a\tb", "x", 'say "hi"', "1\n2"]), min_size=2),
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    is_named=st.booleans(),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
)
def test_the_separator_of_a_sheet_is_found_however_it_was_saved(
    tmp_path_factory, cells, delimiter, is_named, end, encoding
):
    heads = [f"time {place} [µs]" for place in range(len(cells))]
    rows = [[*heads, ""], [""] * (len(heads) + 1), [*cells, ""]]
    text = text_of(rows, delimiter).replace("\r\n", end)
    # A line that names the separator; a bar is one only where it is named.
    text = f"sep={delimiter}{end}" * (is_named or delimiter == "|") + text
    sheet = read(tmp_path_factory.mktemp("sheet"), text.encode(encoding))
    assert (sheet.heads, sheet.separator) == (heads, delimiter)
    assert [row.cells for row in sheet.rows] == [cells]


@pytest.mark.parametrize(
    ("content", "heads"),
    [
        # The line that names the separator decides, whatever there is more of.
        (b"sep=;\r\na;b,c,d\r\n1;2\r\n", ["a", "b,c,d"]),
        # Separators in names: the rows below decide, and then the quotes.
        (b"trial;a, b, c, d;value\n0;0,5;7,5\n", ["trial", "a, b, c, d", "value"]),
        (b'a,"b;c;d;e"\n1,2\n', ["a", "b;c;d;e"]),
        ("\u2028\n\v\n\f\na;b\n1;2\n".encode(), ["a", "b"]),
        (b",a,b\n0,1,2\n", ["", "a", "b"]),  # as pandas writes its index
        (b"a\n1,5\n", ["a"]),
        (b'"time\n[h]";yield\n1,5;2\n', ["time\n[h]", "yield"]),  # Alt and Enter in Excel
    ],
)
def test_separators_in_names_and_cells_are_none(tmp_path, content, heads):
    assert read(tmp_path, content).heads == heads


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b,,\n1,2,,x\n", "row 2 has 4 cells, and the heading 2: is there a decimal comma"),
        (b"a;b\n\n1;2;3\n", "row 3 has 3 cells, and the heading 2; the first row must name"),
        (b'a,b\n1,"2\n', "is no CSV: line 2"),
        (b" \n;;\n", "is empty"),
        (b"sep=;\n", "is empty"),
        (b"PK\x03\x04" + bytes(9), "workbook"),
        (b"\xd0\xcf\x11\xe0" + bytes(9), "workbook"),
        (b"SQLite format 3\0", "database"),
        (b"\x89PNG\r\n\x1a\n" + bytes(9), "no text"),
    ],
)
def test_files_that_are_no_sheet_are_refused_by_name(tmp_path, content, message):
    with pytest.raises(TableError, match=message) as raised:
        read(tmp_path, content)
    assert str(raised.value).startswith(str(tmp_path / "sheet.csv"))


@given(
    real=st.floats(allow_nan=False, allow_infinity=False),
    whole=st.integers(-(2**53), 2**53),
    text=st.text("=+-@;,\"'\tµ x7.\uff1d", min_size=1).filter(lambda text: text == text.strip()),
    comma=st.booleans(),
)
def test_what_is_written_is_one_cell_and_no_formula(tmp_path_factory, real, whole, text, comma):
    path = tmp_path_factory.mktemp("sheet") / "sheet.csv"
    # 0.5 shows how numbers are written, where 1.234 alone may be a thousand.
    rows = [(real, whole, text, None), (0.5, 0, "x", True)]
    path.write_text(written(["a", "b", "c", "d"], rows, comma), encoding="utf-8", newline="")
    sheet, choices = Sheet.read(path), {"c": bx.Choice([text, "another"])}
    assert sheet.separator == (";" if comma else ",") and sheet.heads == ["a", "b", "c", "d"]
    decimal = decimal_of(sheet, {"a": 0, "b": 1, "c": 2}, choices)
    first, second = (row.cells for row in sheet.rows)
    assert number(first[0], decimal) == real and number(first[1], decimal) == whole
    assert value(first[2], choices["c"]) == text and first[3] == "" and second[3] == "True"
    assert not first[2].startswith(("=", "+", "-", "@", "\uff1d"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("61.5", 61.5), ("61,5", 61.5), ("-0,5", -0.5), ("1e-3", 0.001), ("1,5E-03", 0.0015)),
        *((",5", 0.5), ("5,", 5.0), ("+7", 7.0), ("\u22122", -2.0), ("12345,678", 12345.678)),
        *((each, None) for each in ("1.234,5", "1 234", "0x10", "1_000", "inf", "nan", "5 %")),
        *((each, None) for each in ("1,2,3", "--1", ".", "")),
    ],
)
def test_numbers(text, expected):
    if expected is None:
        with pytest.raises(ValueError, match="must be a number"):
            number(text)
    else:
        assert number(text) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a,b\n1.234,7\n", 1.234),
        (b'a,b\n"1,234",7\n', "a decimal point as the whole sheet has, got 1,234"),
        (b"a;b\n1,234;7\n", 1.234),
        (b"a;b\n7.5;1,234\n", "a decimal comma as the whole sheet has, got 7.5"),
        (b"a;b\n1.234;7\n", "row 2: a must not be ambiguous, got 1.234, which is either"),
        (b"a;b\n1.234;7,5\n", "a decimal comma"),
        (b"a;b\n1.234;7.5\n", 1.234),
        (b"a;b\n1.2340;7\n", 1.234),
        (b"a;b;kind\n1,234;7;2.5\n", 1.234),  # a choice says nothing
        (b"a\n1,234\n2,345\n", 1.234),
        ("a;b\n1,234;\u22127.5\n".encode(), 1.234),
    ],
)
def test_a_sheet_has_one_decimal_sign(tmp_path, content, expected):
    sheet = read(tmp_path, content)
    places = {name: place for place, name in enumerate(sheet.heads)}

    def first():
        decimal = decimal_of(sheet, places, {"kind": bx.Choice(["2.5", "3.5"])})
        return number(sheet.rows[0].cells[0], decimal)

    if isinstance(expected, float):
        assert first() == expected
    else:
        with pytest.raises(ValueError, match=re.escape(expected)):
            first()


def test_the_separator_and_the_decimal_sign_may_be_said(tmp_path):
    sheet = read(tmp_path, b"a|b\n1.234|7\n", separator="|", decimal=".")
    assert sheet.heads == ["a", "b"] and decimal_of(sheet, {"a": 0}, {}) == "."
    for options in ({"separator": "; "}, {"separator": ""}, {"decimal": ";"}):
        with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
            read(tmp_path, b"a;b\n1;2\n", **options)


def test_a_workbook_as_a_lab_has_it(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book, path = openpyxl.Workbook(), tmp_path / "lab.xlsx"
    for row in (
        [],
        [None, "time\n[h]", "yield", "solvent", "clean", "day", None],
        [None, 1.5, 0.01487824367770057, " dmso ", True, datetime.date(2026, 1, 5)],
        [],
        [None, 5.0, "7.25", "NA", False, None, "=1/0"],
    ):
        book.active.append(row)
    book.create_sheet("notes").append(["not read"])
    book.save(path)
    sheet = Sheet.read(path)
    assert sheet.heads == ["", "time\n[h]", "yield", "solvent", "clean", "day"]
    assert [(row.number, row.cells) for row in sheet.rows] == [
        (3, ["", "1.5", "0.01487824367770057", "dmso", "True", "2026-01-05 00:00:00"]),
        (5, ["", "5", "7.25", "NA", "False", ""]),
    ]
    assert decimal_of(sheet, {"time": 1, "yield": 2}, {}) == "."


@pytest.mark.parametrize(
    ("shown", "number_format", "text"),
    [
        (0.601, "0.0%", "60.1%"),
        (1, "0%", "100%"),
        (-0.0125, "0.00 %;[Red]-0.00 %", "-1.25%"),
        (60.1, '0.0" %"', "60.1"),  # a sign that is shown behind the number, as it stands
        (60.1, "0.0\\%", "60.1"),
        (60.1, "General", "60.1"),
    ],
)
def test_a_percentage_of_a_workbook_is_what_it_shows(tmp_path, shown, number_format, text):
    openpyxl = pytest.importorskip("openpyxl")
    book, path = openpyxl.Workbook(), tmp_path / "lab.xlsx"
    book.active.append(["yield [%]"])
    book.active.append([shown])
    book.active["A2"].number_format = number_format
    book.save(path)
    (row,) = Sheet.read(path).rows
    assert row.cells == [text]
    assert number(row.cells[0], ".", "%") == float(text.removesuffix("%"))


def test_percent_signs_are_numbers_where_percent_is_the_unit(tmp_path):
    sheet = read(tmp_path, "yield [%];time [h]\n60,1 %;2\n\u22121,5%;3\n".encode())
    assert decimal_of(sheet, {"yield": 0}, {}) == ","
    assert [number(row.cells[0], ",", "%") for row in sheet.rows] == [60.1, -1.5]
    with pytest.raises(ValueError, match="must be a number without %, got '60,1 %': format"):
        number(sheet.rows[0].cells[0], ",", "h")
    assert value("10%", bx.Choice(["10%", "20%"])) == "10%"
