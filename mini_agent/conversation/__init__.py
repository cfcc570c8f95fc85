"""What is said: messages, events, and the conversation that is folded from them."""
