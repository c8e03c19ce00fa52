"""A part of test_use_of_value.py: what fails with 0, and names that mean several things."""
import math


def inverse(value):
    return 1 / value


class Meter:
    """Its attributes have names that functions and variables have, too."""
    sum = bound = 0

    def update(self, value):
        self.sum += value


def places(sizes, bound=1):
    return range(sum(sizes) * bound)


def sum_of_a_meter(v):
    Meter().update(v.item())


def variable_like_an_attribute(v):
    bound = v.item()
    print(bound)
    if Meter().bound:
        pass


def divides(v):
    print(1 / v.item())


def ratio_of_sums(v):
    total = v.item() + 1
    print(2.0 // total)


def divided(v):
    print(v.item() / 2)


def logarithm(v):
    print(math.log10(v.item()))


def logarithm_at_once(v):
    print(math.log(v))


def divides_elsewhere(v):
    print(inverse(v.item()))


def divides_and_compares(v):
    if 1 / v.item() > 2:
        pass


CASES = (
    (sum_of_a_meter, 4, True, 'kept', -1), (variable_like_an_attribute, 4, True, 'shown', -1),
    (divides, 4, True, 'shown', 1), (divides, 8, True, 'shown', 1), (ratio_of_sums, 4, True, 'shown', 1),
    (divided, 4, True, 'shown', -1), (logarithm, 4, True, 'shown', 1), (logarithm_at_once, 4, True, 'shown', 1),
    (divides_elsewhere, 4, True, 'shown', 1), (divides_and_compares, 4, True, 'decides', 1))
