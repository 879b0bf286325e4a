"""Ten thousand hostile texts: nothing in them runs, and each is refused or a valid value."""

import json
import random
import sys
from copy import deepcopy

import pytest
import torch

from botorch_ext.integrations.saved_arguments import as_text, from_text
from tests.integrations import saved_before

# What Python says before it runs, loads or writes anything.
FORBIDDEN = ("import", "open", "exec", "compile", "os.", "subprocess.", "socket.", "shutil.")
FORBIDDEN += ("pickle.", "marshal.", "ctypes.", "code.", "builtins.input", "urllib.")
# SciPy runs a text of its own where a distribution gets its numbers.
OF_SCIPY = "_attach_argparser_methods"
WORDS = (
    *("os.system", "builtins.eval", "eval", "__import__", "__class__", "__reduce__", "__init__"),
    *(
        "torch.load",
        "no_such_module.run",
        "rv_continuous",
        "function",
        "algorithm",
        "default_growth",
    ),
    *("class", "state", "name", "values", "raw_lengthscale", "forward", "constraints", "", "nan"),
)
NUMBERS = (0, 1, -1, 2, 7, 10**4, 10**7, 10**12, 2**63, -(2**63), 10**400, 0.5, -0.0, 1e308, 1e-320)
CONSTANTS = (None, True, False, [], {}, {"not finite": "nan"}, {"not finite": "-inf"})

seen: list[str] = []
is_watched = [False]


def watch(event: str, given: tuple) -> None:
    if is_watched[0] and event.startswith(FORBIDDEN):
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_name != OF_SCIPY:
            frame = frame.f_back
        if frame is None:
            seen.append(f"{event} {given}")


def parts_of(tree):
    """All places in a tree: what holds them, and where."""
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from parts_of(tree[key])


def made_up(rng: random.Random, depth: int = 4):
    """JSON of any kind, often like a value."""
    kind = rng.randrange(8) if depth else rng.randrange(3)
    if kind < 3:
        return deepcopy(rng.choice((WORDS, NUMBERS, CONSTANTS)[kind]))
    if kind < 5:
        return [made_up(rng, depth - 1) for _ in range(rng.randrange(4))]
    state = {rng.choice(WORDS): made_up(rng, depth - 1) for _ in range(rng.randrange(4))}
    return state if kind == 5 else {"class": rng.choice((*CLASSES, *WORDS)), "state": state}


def changed(rng: random.Random, tree):
    """A copy with one to three changes."""
    tree = deepcopy(tree)
    for _ in range(rng.randrange(1, 4)):
        holder, key = rng.choice(list(parts_of(tree)))
        kind = rng.randrange(6)
        if kind == 0:
            holder[key] = made_up(rng)
        elif kind == 1:  # of another value
            other, place = rng.choice(PLACES)
            holder[key] = deepcopy(other[place])
        elif kind == 2:
            holder[key] = deepcopy(rng.choice(rng.choice((CLASSES, WORDS, NUMBERS, CONSTANTS))))
        elif kind == 3 and isinstance(holder, dict):
            holder[rng.choice(WORDS)] = holder.pop(key)
        elif kind == 4:  # in itself
            holder[key] = {"class": rng.choice(CLASSES), "state": {"base_kernel": holder[key]}}
        elif isinstance(holder, list):
            holder.extend(deepcopy(holder[key]) for _ in range(rng.randrange(1, 4)))
        elif isinstance(holder[key], int | float):
            holder[key] += rng.choice((1, -1, 10**12))
    return tree


def torn(rng: random.Random, text: str) -> str:
    """A text that is cut, or of which a few characters are others."""
    at = rng.randrange(len(text))
    return text[:at] + rng.choice(("", '"', "{", "]", ",", "\\", "\x00", "9", "e", text[at // 2 :]))


TREES = [json.loads(text) for text in saved_before.TEXTS.values()]
PLACES = [place for tree in TREES for place in parts_of(tree)]
CLASSES = sorted({holder[key] for holder, key in PLACES if key == "class"})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_hostile_texts_run_nothing():
    rng = random.Random(0)
    texts = [json.dumps(changed(rng, rng.choice(TREES))) for _ in range(8_000)]
    texts += [json.dumps({"value": made_up(rng)}) for _ in range(1_000)]
    texts += [torn(rng, rng.choice(list(saved_before.TEXTS.values()))) for _ in range(1_000)]
    for text in saved_before.TEXTS.values():  # or what it needs would be imported under watch
        as_text(from_text(text))
    repr(torch.ones(1))
    sys.addaudithook(watch)
    is_watched[0], num_read, refusals = True, 0, []
    try:
        for text in texts:
            try:
                values = from_text(text)
            except ValueError as error:
                refusals.append(str(error))
            else:
                num_read += 1
                assert from_text(as_text(values)).keys() == values.keys()
        assert not seen
        exec("1")
        assert seen  # the watch sees
    finally:
        is_watched[0] = False
    assert all(each.startswith("saved arguments cannot be read: ") for each in refusals)
    assert len(texts) == 10_000 and 100 < num_read < 5_000
