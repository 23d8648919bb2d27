"""Exact limits for statistical tests. Each test may raise a false alarm once in a billion runs."""

from scipy import stats

FALSE_ALARM = 1e-9


def chi_square(degrees: int) -> tuple[float, float]:
    """Between these a chi-square variable falls, but for one time in a billion."""
    law = stats.chi2(degrees)
    return float(law.ppf(FALSE_ALARM / 2)), float(law.isf(FALSE_ALARM / 2))


def binomial(trials: int, probability: float, variables: int = 1) -> tuple[int, int]:
    """Between these, both included, a binomial variable falls, but for one time in a billion.

    So do all of so many variables together.
    """
    law, each = stats.binom(trials, probability), FALSE_ALARM / variables
    return int(law.ppf(each / 2)), int(law.isf(each / 2))


def least_coverage(held: int, draws: int) -> float:
    """The lower 99.9 % confidence limit of a probability: the least one for which at least so many
    successes are not rarer than one in a thousand."""
    return float(stats.beta.ppf(1e-3, held, draws - held + 1)) if held else 0.0
