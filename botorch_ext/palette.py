"""Palette: the colours of all pictures."""

# Okabe and Ito's, told apart by colour-blind readers; their yellow is too pale for a line.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
