"""Hyperparameters from data: their prior, their posterior density and particles of it."""
