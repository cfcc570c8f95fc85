"""Does an idea make the agent better? Suites of tasks, each run with two or more arms and compared pair by pair."""
