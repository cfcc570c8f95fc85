"""A page of the catalogue as text."""

from catalogue.paging import page, page_count

PAGE_SIZE = 20


def listing(titles, number):
    rows = [f"page {number} of {page_count(titles, PAGE_SIZE)}"]
    return "\n".join(rows + page(titles, number, PAGE_SIZE))
