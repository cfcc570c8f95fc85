"""The recipes of our kitchen."""
