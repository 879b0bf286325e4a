"""The command line, run as a module."""

import sys

from botorch_ext.command_line import main

if __name__ == "__main__":
    sys.exit(main())
