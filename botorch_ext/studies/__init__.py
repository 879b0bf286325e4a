"""Studies: strategies against an objective, with workers or simulated without a clock."""
