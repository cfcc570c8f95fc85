"""The diary as a Markdown table."""

ESCAPES = str.maketrans({"|": "\\|", "\n": " ", "\r": None})


def markdown(rows):
    text = "Date|Species|Count|Note\n:---|:---|---:|:---\n"
    for row in rows:
        text += f"{row.date}|{row.species.translate(ESCAPES)}|{row.count}|{row.note.translate(ESCAPES)}\n"
    return text
