"""What remains: the event log, and the readers of it that write files for people."""
