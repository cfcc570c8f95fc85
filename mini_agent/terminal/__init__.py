"""The seat: what a person sees, and what the keyboard does."""
