"""Studies among workers: that keep the machine busy, that die."""
