"""Writes statistics.json, which src/statistics/reference.rs is held to. SciPy and plain counting compute it.

    pip install scipy==1.17.1 && python statistics.py > statistics.json
"""

import itertools
import json
import random

import numpy
from scipy.stats import binom, fisher_exact, hypergeom, norm

chance = random.Random(15)


def pair(most):
    n, m = chance.randint(1, most), chance.randint(1, most)
    return [[chance.randint(0, n), n], [chance.randint(0, m), m]]


def table(counts):
    (a, n), (b, m) = counts
    return [[a, n - a], [b, m - b]]


def greater(counts):
    return fisher_exact(table(counts), alternative="greater").pvalue


def distribution(counts):
    """The hypergeometric distribution with these margins, from 0 successes now on."""
    (a, n), (b, m) = counts
    return hypergeom(n + m, a + b, n).pmf(numpy.arange(n + 1))


def together(pairs):
    """The exact stratified test: convolves the distributions of all tables."""
    sums = numpy.array([1.0])
    for counts in pairs:
        sums = numpy.convolve(sums, distribution(counts))
    seen = sum(counts[0][0] for counts in pairs)
    return min(1.0, float(sums[seen:].sum()))


def adjusted(pairs):
    """Holm's procedure with the distribution of each test, by its definition: closed testing over all subsets."""
    p = [greater(counts) for counts in pairs]
    tails = [numpy.cumsum(distribution(counts)[::-1]) for counts in pairs]

    def attainable(tail, level):
        below = tail[tail <= level * (1 + 1e-9)]
        return float(below.max()) if len(below) else 0.0

    def local(subset):
        least = min(p[place] for place in subset)
        return min(1.0, sum(attainable(tails[place], least) for place in subset))

    found = [0.0] * len(pairs)
    for size in range(1, len(pairs) + 1):
        for subset in itertools.combinations(range(len(pairs)), size):
            value = local(subset)
            for place in subset:
                found[place] = max(found[place], value)
    return found


def power(n, m, level, before, now):
    total = 0.0
    for a, b in itertools.product(range(n + 1), range(m + 1)):
        if greater([[a, n], [b, m]]) <= level:
            total += binom.pmf(a, n, now) * binom.pmf(b, m, before)
    return total


fixed = [[[5, 5], [0, 5]], [[1, 1], [0, 1]], [[4, 4], [0, 4]], [[3, 4], [1, 4]], [[30, 40], [12, 40]], [[900, 1000], [850, 1000]]]
tables = fixed + [pair(most) for most in [5, 10, 20, 60, 300] for _ in range(6)]
strata = [[pair(most) for _ in range(count)] for most, count in [(1, 20), (3, 10), (5, 59), (10, 59), (40, 5), (200, 8)]]
families = [[pair(most) for _ in range(count)] for most, count in [(3, 6), (5, 10), (10, 10), (30, 8)]]
families.append([[[5, 5], [0, 5]], [[10, 10], [0, 10]], [[0, 5], [0, 5]], [[4, 5], [1, 5]], [[9, 10], [1, 10]]])
designs = [(5, 5, 0.025, 0.0, 0.9), (10, 10, 0.025, 0.05, 0.5), (10, 20, 0.0125, 0.1, 0.6), (30, 30, 0.01, 0.2, 0.5), (4, 4, 0.025, 0.3, 0.99)]

print(json.dumps({
    "fisher": [{"pair": counts, "two_sided": fisher_exact(table(counts)).pvalue, "rise": greater(counts)} for counts in tables],
    "together": [{"pairs": pairs, "rise": together(pairs)} for pairs in strata],
    "adjusted": [{"pairs": pairs, "rises": adjusted(pairs)} for pairs in families],
    "power": [{"now": n, "before": m, "level": level, "from": before, "to": now, "power": power(n, m, level, before, now)} for n, m, level, before, now in designs],
    "normal": [{"z": z, "below": norm.cdf(z)} for z in [-6.0, -3.0, -1.5, -0.1, 0.0, 0.7, 1.96, 4.0]],
}))
