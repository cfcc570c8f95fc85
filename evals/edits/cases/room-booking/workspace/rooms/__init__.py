"""Who has which room, and when."""
