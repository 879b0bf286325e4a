"""The arguments that functions of this package share: each is described once.

A function takes them as ``**given: Unpack[...]`` of the classes here. `complete` gives it the
signature and the docstring with all arguments by name, as `help`, editors and the reference show
them.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, Required, TypedDict, get_args, get_type_hints

from botorch_ext.models.checks import PriorMean
from botorch_ext.strategies.adaptive.bounds_strategy import (
    BoundsOptions,
    FirstPointOptions,
    PendingTrials,
)
from botorch_ext.widths import Width


class GivenModel(TypedDict, total=False):
    """The model, besides its kernel."""

    noise_variance: Required[float]
    mean: PriorMean | float | None


class Model(TypedDict, total=False):
    """The model, besides its kernel, which may be `Fitted`."""

    noise_variance: float | None
    mean: PriorMean | float | None


class Confidence(TypedDict, total=False):
    """The numbers of the published width."""

    rkhs_bound: float | None
    noise_std: float | None
    delta: float


class Published(Confidence, total=False):
    """The published width, or another one."""

    width: Width | float | None


class WithoutContexts(PendingTrials, FirstPointOptions, total=False):
    """What an adaptive method takes that knows no contexts."""


class Optimistic(Model, Published, BoundsOptions, total=False):
    """What an optimistic method with one model takes."""


class OfCandidates(Confidence, BoundsOptions, total=False):
    """What a method with candidate models takes, but for its width."""


@dataclass(frozen=True)
class Shared:
    """An argument of several functions.

    Args:
        text: The description.
        default: The default, where it may be left out.
        if_optional: What the description adds where it may be left out.
        if_fitted: What it adds where it may be `Fitted`.
        with_contexts: What it adds for methods that take contexts.
    """

    text: str
    default: Any = None
    if_optional: str = ""
    if_fitted: str = ""
    with_contexts: str = ""


SHARED = {
    "domain": Shared(
        "The domain to maximise over: a `Box`, its bounds, or a `FiniteSet`, with d dimensions."
    ),
    "kernel": Shared(
        "A GPyTorch kernel with k(x, x) <= 1.",
        with_contexts="With contexts it is a kernel of joint rows: the d columns of the action, "
        "then those of the context.",
        if_fitted="Or `Fitted`, which fits the hyperparameters to the data; no guarantee holds "
        "then.",
    ),
    "models": Shared(
        "The candidate models.",
        with_contexts="With contexts they are models of joint rows: the d columns of the action, "
        "then those of the context.",
    ),
    "noise_variance": Shared(
        "lambda > 0, the noise variance (the ridge) of the model, in squared units of f.",
        if_optional="Needed unless the kernel is `Fitted`, which estimates it from the data.",
    ),
    "horizon": Shared("T, the number of trials, at least 1."),
    "rkhs_bound": Shared(
        "B, at least the RKHS norm of f, in units of f.",
        if_optional="Needed unless ``width`` is given.",
    ),
    "noise_std": Shared(
        "sigma, the sub-Gaussian constant of the noise, in units of f.",
        if_optional="Needed unless ``width`` is given.",
    ),
    "delta": Shared("The probability that a confidence bound fails, in (0, 1).", 0.1),
    "width": Shared(
        "A width, or a number, in place of the published width. ``rkhs_bound``, ``noise_std`` and "
        "``delta`` are then unused. None: the published width."
    ),
    "bounds": Shared(
        'Which widths are used where none is given; all hold alike. "published": the published '
        'widths. "mixture": `FixedDesignMixture` in place of `FixedDesign` (on a box '
        "`FixedDesignNetMixture`), and `Mixture` in place of `SelfNormalized`, which are never "
        'wider. "ladder", on a finite set only: as "mixture", with `FixedDesignLadder` in place of '
        "`FixedDesignMixture`, which is never wider either.",
        "published",
    ),
    "enlargement": Shared(
        'How confidence bounds are enlarged for the misspecification. "published": by eps sqrt(t / '
        'lambda) times the standard deviation. "pointwise": by eps times the sum of the absolute '
        "weights of the observations, which is never more and holds as well (see "
        "`PointwiseEnlarged`).",
        "published",
    ),
    "mean": Shared(
        "The prior mean, in units of f: a GPyTorch `Mean`, a callable from ``... x n x d`` to "
        "``... x n``, or a number. None: zero."
    ),
    "pending": Shared(
        'How pending trials (asked, not told) count. "ignore": not at all. "hallucinate": in the '
        'standard deviation and the width. "censor": in both, and in the mean as observations of '
        "``minimum``.",
        "hallucinate",
    ),
    "inflate": Shared(
        'Whether ``pending="hallucinate"`` multiplies the width by exp(information gain of the '
        "pending points given the told ones). This makes the confidence bound valid; it is rarely "
        "used in practice.",
        False,
    ),
    "minimum": Shared(
        "A lower bound on the values of f, in units of f; with ``minimize`` an upper bound on the "
        'costs. Needed with ``pending="censor"``, and only there.'
    ),
    "timeout": Shared(
        'm, in steps, with ``pending="censor"`` only: a trial that was asked at step s and is not '
        "told before the ask of step s + m + 1 stays censored for ever. None: a result counts "
        "however late it is told."
    ),
    "seed": Shared(
        "The seed of the search and of the first points. On a finite set the first of several "
        "equally good points is chosen.",
        0,
    ),
    "initial": Shared(
        "Observations from before the study: a pair ``(X, Y)`` of shapes ``n x d`` and ``n`` (or "
        "``n x 1``), or a triple ``(X, Y, std)`` with ``n`` standard errors if the method takes "
        "them. They count as steps. None: no observations."
    ),
    "minimize": Shared(
        "Whether small values are good. All values that are given and returned are then costs. "
        "None: large values are good, unless `bx.Study`, `bx.run` or another tool minimises."
    ),
    "num_initial": Shared(
        "The number of Sobol points that are asked first. They count as steps.", 0
    ),
    "context_domain": Shared(
        "The contexts: a domain, their dimension d_z, or a `ContextSpace`. Every ask then needs a "
        "context, and ``initial`` has joint rows (the action, then the context). None: no contexts."
    ),
}

_MADE = " to ask and to tell; see there for the keys of ``trial.info`` and of the report."
_MISSING = "TypeError: If a required argument is missing, or if an argument is unknown."
_IMPOSSIBLE = "ValueError: If an argument has an impossible value"
_NAMED = "The message names the argument."
_WITHOUT_NUMBERS = (
    ", or if ``width`` is None and an argument that the published width needs is missing"
)


def complete(function: Callable[..., Any]) -> inspect.Signature:
    """Gives a function the signature and the docstring with all arguments by name.

    The docstring describes what the function takes alone, and what differs from `SHARED`. Where it
    does not say what the function returns or raises, that is the usual.

    Args:
        function: A function whose ``**given`` are shared arguments.

    Returns:
        The signature.

    Raises:
        KeyError: If an argument is described nowhere.
    """
    signature = inspect.signature(function)
    own = signature.parameters.values()
    named = [each for each in own if each.kind is not Parameter.VAR_KEYWORD]
    given = [each.name for each in own if each.kind is Parameter.VAR_KEYWORD]
    for name in given:
        (shared,) = get_args(get_type_hints(function)[name])
        named += map(_parameter, shared.__annotations__, shared.__annotations__.values())
    signature = signature.replace(parameters=named)
    function.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    function.__doc__ = _completed(inspect.getdoc(function) or "", signature)
    return signature


def _parameter(name: str, hint: Any) -> Parameter:
    text = hint.__forward_arg__
    needed = text.startswith("Required[")
    return Parameter(
        name,
        Parameter.KEYWORD_ONLY,
        default=Parameter.empty if needed else SHARED[name].default,
        annotation=text.removeprefix("Required[").removesuffix("]") if needed else text,
    )


def _completed(doc: str, signature: inspect.Signature) -> str:
    parameters, hint = signature.parameters, signature.return_annotation
    made = hint if isinstance(hint, str) else "Strategy"
    doc, _, raises = doc.partition("\n\nRaises:\n")
    doc, _, returns = doc.partition("\n\nReturns:\n")
    doc, _, described = doc.partition("\n\nArgs:\n")
    own = dict(each.split(": ", 1) for each in _entries(described))
    texts = [f"{name}: {own.get(name) or _shared_text(name, parameters)}" for name in parameters]
    usual = textwrap.wrap(f"{'An' if made[0] in 'IO' else 'A'} `{made}`{_MADE}", 92)
    returns = returns or textwrap.indent("\n".join(usual), " " * 4)
    raises = raises or _indented([_MISSING, _impossible(parameters)])
    return f"{doc}\n\nArgs:\n{_indented(texts)}\n\nReturns:\n{returns}\n\nRaises:\n{raises}"


def _entries(section: str) -> list[str]:
    """The entries of a section of a docstring, each in one line."""
    entries: list[str] = []
    for line in textwrap.dedent(section).splitlines():
        if line.startswith(" "):
            entries[-1] += f" {line.strip()}"
        else:
            entries.append(line)
    return entries


def _shared_text(name: str, parameters: Mapping[str, Parameter]) -> str:
    shared, parameter = SHARED[name], parameters[name]
    parts = [
        shared.text,
        shared.if_optional if parameter.default is not Parameter.empty else "",
        shared.with_contexts if "context_domain" in parameters else "",
        shared.if_fitted if "Fitted" in str(parameter.annotation) else "",
    ]
    return " ".join(filter(None, parts))


def _impossible(parameters: Mapping[str, Parameter]) -> str:
    numbers = [parameters[name] for name in ("rkhs_bound", "noise_std") if name in parameters]
    is_published = any(each.default is not Parameter.empty for each in numbers)
    return f"{_IMPOSSIBLE}{_WITHOUT_NUMBERS if is_published else ''}. {_NAMED}"


def _indented(entries: Iterable[str]) -> str:
    wrap = textwrap.TextWrapper(
        width=96, initial_indent=" " * 4, subsequent_indent=" " * 8, break_on_hyphens=False
    )
    return "\n".join(map(wrap.fill, entries))
