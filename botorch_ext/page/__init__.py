"""Page: the status, the tables and the page of a study, most of it from its events alone."""
