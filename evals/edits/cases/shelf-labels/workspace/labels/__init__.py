"""Shelf labels."""
