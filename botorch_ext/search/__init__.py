"""Search: the maximisers of acquisition functions over a box, and over models too."""
