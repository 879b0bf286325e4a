"""The command line, run as a module."""

import sys

from botorch_ext.command_line import main

sys.exit(main())
