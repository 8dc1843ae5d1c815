"""Digests in plain Python integers: the polynomials that docs/decisions/0033 describes."""

PRIME = 2**61 - 1


def halves_of(secret):
    """The multiplier, the point and the point of the group, for each half."""
    numbers = [int.from_bytes(secret[at : at + 8], "little") for at in range(0, len(secret), 8)]
    for multiplier, point, group_point in (numbers[:3], numbers[3:]):
        yield multiplier | 1, point % 2**59, group_point % 2**59


def coefficient(word, multiplier):
    return (word * multiplier % 2**64) >> 5


def set_digest(members, secret):
    """The product of the factors of a set, at two points."""
    found = []
    for multiplier, point, _ in halves_of(secret):
        product = 1
        for member in members:
            product = product * (point + coefficient(member, multiplier)) % PRIME
        found.append(product)
    return found
