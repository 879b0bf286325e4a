"""Functions that are made up: of known norm, growth or error."""
