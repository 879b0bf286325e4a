"""Formulas written as plain text, as in ``B + sigma/sqrt(lambda) sqrt(2 ln(1/delta))``, found in
prose and turned into TeX: docstrings stay readable in a terminal and are typeset on the pages.
"""

from __future__ import annotations

import re

_GREEK = {
    *("alpha", "beta", "gamma", "Gamma", "delta", "Delta", "eps", "lambda", "mu", "nu", "xi"),
    *("rho", "sigma", "tau", "theta", "phi", "psi", "eta", "pi"),
}
_FUNCTIONS = {"ln", "exp", "log", "det", "max", "min", "sup", "inf", "cos", "sin"}
_BRACKETED = {"sqrt": (r"\sqrt{", "}"), "ceil": (r"\lceil ", r"\rceil ")}
_SUMS = {"sum", "prod"}
# Words that stand in formulas for what the code calls so.
_WORDS = {"mean", "std", "width", "side", "argmax", "kl"}
_RELATIONS = {"<=": r"\le ", ">=": r"\ge ", "+-": r"\pm ", "...": r"\ldots ", "~": r"\sim "}
_ARTICLES = ("a", "A", "I")
_BINARY = ("+", "-", "*", "/", "^", "=", "<", ">", "<=", ">=", "+-")
_NOT_AT_EDGES = (",", "=", "+", "/", "*", "^", "<", ">", "<=", ">=")
_OPENING, _CLOSING = "([{", ")]}"

_TOKEN = re.compile(
    r"""
    (?P<bullet>\n\s*-\s)
  | (?P<space>\s+)
  | (?P<word>i\.i\.d\.|e\.g\.|i\.e\.|[A-Za-z]+(?:['-][A-Za-z]+)+|\d+[A-Za-z]\w*)
  | (?P<number>\d+(?:\.\d+)?(?:e-?\d+)?(?![A-Za-z]))
  | (?P<name>(?:[A-Za-z]\d|[A-Za-z]+)(?:~(?=\W))?'*(?:\*(?!\w))?
      (?:_(?:\{[^}]*\}|[A-Za-z0-9]+(?![\w*])))?)(?!\w)
  | (?P<operator>\.\.\.|<=|>=|\+-|[-+*/^=<>|(){}\[\],])
  | (?P<other>\w+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile(r"([A-Za-z]+)(\d?)(~?)('*)(\*?)(?:_(?:\{([^}]*)\}|(\w+)))?")

Token = tuple[str, str]


def _apart(match: re.Match[str]) -> str:
    return match[1] + (" 2" if match[1] == "ln" else "_2")


def typeset(text: str) -> str:
    """Prose whose formulas are `:math:` roles.

    Args:
        text: One paragraph or more, without code.
    """
    text = re.sub(r"\b(ln|log)2\b", _apart, text)
    tokens = [(match.lastgroup or "", match[0]) for match in _TOKEN.finditer(text)]
    out, run = "", []
    for token in [*tokens, ("other", "")]:
        if _belongs(token) and not (token[0] == "space" and token[1].count("\n") > 1):
            run.append(token)
            continue
        out += _typeset_run(run) + token[1]
        run = []
    # A role must stand free, for which an escaped space, which is not shown, does.
    out = re.sub(r"(?<=[^\s'\"(\[{<\-/:])(?=:math:`)", r"\\ ", out)
    return re.sub(r"(:math:`[^`]*`)(?=[^\s'\")\]}>\-/:.,;!?\\])", r"\1\\ ", out)


def _base(name: str) -> str:
    match = _NAME.fullmatch(name)
    return match[1] if match else name


def _belongs(token: Token) -> bool:
    kind, text = token
    if kind == "name":
        base = _base(text)
        known = _GREEK | _FUNCTIONS | _SUMS | _WORDS | _BRACKETED.keys()
        return len(base) == 1 or base in known or re.fullmatch(r"[a-z]+_\d", text) is not None
    return kind in ("space", "number", "operator")


def _typeset_run(run: list[Token]) -> str:
    """A run of symbols, cut where prose cuts it, its formulas typeset."""
    out, piece = "", []
    cuts = _cuts(run)
    for i in range(len(run) + 1):
        if i < len(run) and i not in cuts:
            piece.append(run[i])
            continue
        out += _typeset_piece(piece)
        out += run[i][1] if i < len(run) else ""
        piece = []
    return out


def _cuts(run: list[Token]) -> set[int]:
    """Where brackets have no partner, and commas between two formulas."""
    opened: list[int] = []
    cuts: set[int] = set()
    depths = []
    for i, (kind, text) in enumerate(run):
        if kind == "operator" and text in _OPENING:
            opened.append(i)
        elif kind == "operator" and text in _CLOSING:
            if opened:
                opened.pop()
            else:
                cuts.add(i)
        depths.append(len(opened))
    cuts.update(opened)
    if not any(text == "..." for _, text in run):
        cuts.update(
            i
            for i, (_, text) in enumerate(run)
            if text == "," and depths[i] == sum(j < i for j in opened)
        )
    return cuts


def _typeset_piece(piece: list[Token]) -> str:
    """A formula, if it says something that only a formula says; symbols of prose at its ends stay
    outside."""
    start, end = 0, len(piece)
    while start < end and _is_prose(piece[start:end], first=True):
        start += 1
    while end > start and _is_prose(piece[start:end], first=False):
        end -= 1
    inside = piece[start:end]
    ahead, behind = ("".join(text for _, text in part) for part in (piece[:start], piece[end:]))
    if inside and inside[0][1] == "(" and inside[-1][1] == ")" and not _cuts(inside[1:-1]):
        inside, ahead, behind = inside[1:-1], ahead + "(", ")" + behind
    if not _says_something(inside):
        return "".join(text for _, text in piece)
    return f"{ahead}:math:`{to_tex(inside)}`{behind}"


def _is_prose(piece: list[Token], first: bool) -> bool:
    inwards = piece if first else piece[::-1]
    kind, text = inwards[0]
    if kind == "space" or text in _NOT_AT_EDGES:
        return True
    if text == "|":
        return sum(value == "|" for _, value in piece) % 2 == 1
    if text == "-":
        return not first
    beside_kind, beside = next((token for token in inwards[1:] if token[0] != "space"), ("", ""))
    if text in _ARTICLES:
        return beside not in _BINARY
    if text in _WORDS:
        of_formula = not first and beside_kind == "name" and beside not in _WORDS
        return not of_formula and beside not in ("(" if first else ")", *_BINARY)
    return False


def _says_something(piece: list[Token]) -> bool:
    names = [_base(text) for kind, text in piece if kind == "name"]
    if set(names) - _WORDS - _FUNCTIONS - _SUMS - _BRACKETED.keys():
        return True
    return bool(names) and any(text in ("+", "+-", "*", "=", "^") for _, text in piece)


def to_tex(tokens: list[Token]) -> str:
    """TeX of a formula."""
    tokens = [token for token in tokens if token[0] != "space"]
    out: list[str] = []
    closers: list[str] = []
    raised = False  # the next symbol or bracket is an exponent
    for i, (kind, text) in enumerate(tokens):
        next_kind, following = tokens[i + 1] if i + 1 < len(tokens) else ("", "")
        previous = tokens[i - 1] if i else ("", "")
        if text == "^" or (text == "-" and previous[1] == "^"):
            raised = True
            out.append("^{" if text == "^" else "-")
            continue
        if kind == "name" and text in _BRACKETED and following == "(":
            continue
        if kind == "operator" and text in _OPENING:
            opening, closing = {"(": "()", "[": "[]", "{": (r"\{", r"\}")}[text]
            if raised:
                opening, closing = ("", "}") if previous[1] == "^" else (opening, closing + "}")
            elif previous[1] in _BRACKETED:
                opening, closing = _BRACKETED[previous[1]]
            out.append(opening)
            closers.append(closing)
        elif kind == "operator" and text in _CLOSING:
            out.append(closers.pop())
        else:
            factor = previous[0] in ("number", "name") or previous[1] == ")"
            if kind == "number" and factor and previous[1] not in {"x", *_FUNCTIONS} and not raised:
                out.append(r"\cdot")
            times = text == "x" and (previous[1] == "]" or previous[0] == next_kind == "number")
            out.append(r"\times" if times else _symbol((kind, text)))
            if raised:
                out.append("}")
        raised = False
    return " ".join(out).strip()


def _symbol(token: Token) -> str:
    kind, text = token
    if kind != "name":
        return _RELATIONS.get(text, r"\cdot" if text == "*" else text)
    match = _NAME.fullmatch(text)
    if match is None:
        return text
    base, digit, tilde, primes, star, braced, plain = match.groups()
    if base == "eps":
        tex = r"\varepsilon"
    elif base in _GREEK | _FUNCTIONS | _SUMS:
        tex = "\\" + base
    else:
        tex = base if len(base) == 1 else rf"\mathrm{{{base}}}"
    if tilde:
        tex = rf"\tilde{{{tex}}}"
    tex += primes + ("^*" if star else "")
    below = braced or plain or digit or None
    if below is None:
        return tex
    inner = [(m.lastgroup or "", m[0]) for m in _TOKEN.finditer(below)]
    return f"{tex}_{{{to_tex(inner) if braced or len(below) == 1 else _subscript(below)}}}"


def _subscript(word: str) -> str:
    return "\\" + word if word in _GREEK | _FUNCTIONS else rf"\mathrm{{{word}}}"
