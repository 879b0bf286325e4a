"""Commands that change a study or ask its model; those that look at events alone are in `page`."""
