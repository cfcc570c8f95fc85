"""The edit tool: patch text, read into hunks, placed in files, written all or not at all."""
