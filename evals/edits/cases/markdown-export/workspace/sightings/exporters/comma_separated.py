"""The diary for spreadsheets."""

import csv
import io

HEADER = ("Date", "Species", "Count", "Note")


def comma_separated(rows):
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows((row.date, row.species, row.count, row.note) for row in rows)
    return text.getvalue()
