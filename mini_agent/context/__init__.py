"""What fits: how large a conversation is, and how it is made smaller."""
