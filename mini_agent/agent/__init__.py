"""The loop: ask the model, run the tools it asks for, ask again."""
