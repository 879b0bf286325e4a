"""Adaptive strategies: each point is chosen from all that was told."""
