"""Reports: what the events of a study that lasts say by themselves, without its strategy."""
