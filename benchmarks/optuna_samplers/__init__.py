"""Samplers of Optuna compared, ours among them."""
