"""Masters: strategies that play other strategies."""
