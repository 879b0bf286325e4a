"""Integrations: strategies inside the tools people already use. Each module imports its tool."""
