"""The choir's newsletter."""
