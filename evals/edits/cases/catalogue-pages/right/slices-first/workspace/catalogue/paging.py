"""A long list, page by page. Pages are counted from 1."""


def _pages(items, size):
    return [items[start : start + size] for start in range(0, len(items), size)] or [[]]


def page_count(items, size):
    return len(_pages(items, size))


def page(items, number, size=20):
    """Return the items of a page; raise ValueError where there is no such page."""
    pages = _pages(items, size)
    if number < 1 or number > len(pages):
        raise ValueError(f"there is no page {number}")
    return pages[number - 1]
