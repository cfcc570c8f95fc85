"""Visitors of the local museum."""
