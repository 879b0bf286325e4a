"""Strategies inside the tools that people already use."""
