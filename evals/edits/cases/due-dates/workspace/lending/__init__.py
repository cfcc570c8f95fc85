"""The tool library."""
