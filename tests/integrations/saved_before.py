"""What the library saved at commit 978f965: arguments as text, and experiments of Ax as JSON."""

import gzip
import json
from pathlib import Path

_SAVED = json.loads(gzip.decompress(Path(__file__).with_name("saved_before.json.gz").read_bytes()))
#: From a name to the text of one argument, ``value``: those of `test_saved_arguments`.
TEXTS: dict[str, str] = _SAVED["texts"]
#: From a method to its experiment, after the ``week`` of `test_ax_saving`.
EXPERIMENTS = _SAVED["experiments"]
