"""The bird diary of the nature reserve."""
