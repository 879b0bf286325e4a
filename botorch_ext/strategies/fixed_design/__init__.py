"""Fixed designs: rounds and levels planned without looking at their own observations."""
