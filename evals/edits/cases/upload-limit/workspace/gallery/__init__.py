"""The photo gallery of the hiking club."""
