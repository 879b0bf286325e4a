"""Robust: perturbations of a point, and the point whose worst one is best."""
