"""The books of the village library."""
