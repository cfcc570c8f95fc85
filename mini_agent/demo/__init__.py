"""The demonstration: a small broken project and the script of the model that mends it."""
