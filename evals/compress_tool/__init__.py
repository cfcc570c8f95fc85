"""Large tool outputs that mislead first and are corrected later; the last turn may not read again."""
