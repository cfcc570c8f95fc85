"""Questions whose answer stands in exactly one place of a small project."""
