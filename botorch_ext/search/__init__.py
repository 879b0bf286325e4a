"""Search: where a function is largest.

On a box and over models, in the region of a box that elimination leaves, and for the worst
perturbation in a ball; and plans of points with the largest standard deviation.
"""
