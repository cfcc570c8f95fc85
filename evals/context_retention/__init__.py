"""Long, noisy sessions whose last task rests on what was told early, changed midway and never repeated."""
