"""Objects in, what a page shows out: pure functions and frozen values, which are the JSON of the page, too."""
