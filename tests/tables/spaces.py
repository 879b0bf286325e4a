"""Spaces, values and sheets as people may have them."""

import csv
import io

from hypothesis import strategies as st

import botorch_ext as bx

SIGNS = [*"abz ,;'=-+@°é", '"', "(", "\t", "\n", "\v", "\f", "\u2028", "\r\n"]
PRINTED = [each for each in SIGNS if each.isprintable()]


def names(signs=SIGNS):
    """Names that differ without regard to blanks, apostrophes and case."""
    return (
        st.lists(st.sampled_from(signs), min_size=1, max_size=6)
        .map("".join)
        .filter(lambda name: _bare(name) not in ("", "trial", "result"))
    )


def _bare(name):
    return name.strip().lstrip("'").strip().casefold()


def parameters(signs=SIGNS):
    """Parameters of each kind, some with units."""
    units = st.sampled_from([None, "°C", "mol/l"])
    reals = st.builds(
        lambda low, side, unit, more: bx.Real(low, low + side, unit=unit, **more),
        st.sampled_from([-3.5, 0.25, 1000.0]),
        st.sampled_from([0.5, 60.0, 1234.0]),
        units,
        st.sampled_from([{}, {"digits": 1}, {"step": 0.25}]),
    )
    choices = st.lists(names(signs), min_size=2, max_size=4, unique_by=_bare)
    return st.one_of(
        reals,
        st.sampled_from([bx.Real(1e-4, 10.0, log=True), bx.Real(3, 3), bx.Choice([2, 2.5, True])]),
        st.builds(lambda low, unit: bx.Integer(low, low + 2000, unit=unit), st.just(5), units),
        choices.map(bx.Choice),
    )


def spaces(signs=SIGNS):
    """Spaces of one to four parameters, of which one at least varies."""
    named = st.lists(
        st.tuples(names(signs), parameters(signs)),
        min_size=1,
        max_size=4,
        unique_by=lambda pair: _bare(pair[0]),
    )
    return named.map(lambda pairs: bx.Space({**dict(pairs), "always": bx.Real(0, 1)}))


def values():
    """Measured values, with and without powers."""
    return st.one_of(
        st.floats(-1e6, 1e6, allow_subnormal=False), st.sampled_from([1e-300, -2.5e17, 0.125, 7.0])
    )


def rows_of(text, delimiter=","):
    """The rows of a CSV text."""
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))


def text_of(rows, delimiter, quoting=csv.QUOTE_MINIMAL):
    """Rows as CSV."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=delimiter, quoting=quoting).writerows(rows)
    return buffer.getvalue()
