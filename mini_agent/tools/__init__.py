"""What the agent can do: the tools, and the one workspace they work in."""
