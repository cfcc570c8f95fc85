"""A recipe as text."""


def page(recipe):
    rows = [f"{recipe['title']} (serves {recipe['serves']})", ""]
    for ingredient in recipe["ingredients"]:
        rows.append("  " + ingredient_line(ingredient))
    rows.append("")
    rows += [f"{number}. {step}" for number, step in enumerate(recipe["steps"], 1)]
    return "\n".join(rows)


def ingredient_line(ingredient):
    amount = ingredient["amount"]
    if amount is None:  # salt, pepper: as one likes
        return ingredient["name"]
    number = f"{amount:.2f}".rstrip("0").rstrip(".")
    return f"{number} {ingredient['unit']} {ingredient['name']}".replace("  ", " ")
