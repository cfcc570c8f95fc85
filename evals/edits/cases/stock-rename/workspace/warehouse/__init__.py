"""The spare parts store."""
