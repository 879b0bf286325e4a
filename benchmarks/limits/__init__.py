"""Limits on other outcomes: what methods lose that are told them, and how often they break them."""
