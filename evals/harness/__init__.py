"""What all suites share: running cells, measuring, grading, comparing, reporting."""
