"""The endpoint picker's configuration: where it comes from, and how one of an older version is rewritten."""
