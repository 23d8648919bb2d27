"""The estimator of the clustering coefficient of every node.

Model
    The share of a node's pairs of neighbours that are joined: t̂_u/ŵ_u, with the unbiased numbers of
    triangles at the node and of its pairs of neighbours.
Bias
    A ratio of two unbiased counts: consistent, not unbiased.
Interval
    Fieller's, with the exact estimates of both variances and of their covariance: t̂ − R·ŵ is a sum
    of products of a(y), whose variance has an unbiased estimate for every R. It is cut to [0, 1],
    and is all of it where a node has too few neighbours to be seen through the noise.
Cost
    Popcounts at all pairs.
Reference
    D. J. Watts, S. H. Strogatz, Collective dynamics of small-world networks, Nature 393 (1998).
"""

import math

import numpy as np

from silograph.dp.channel import Channel
from silograph.estimators.estimate import FloatArray
from silograph.estimators.pair_sums import GraphSums
from silograph.estimators.ratio import RatioAnswer
from silograph.estimators.triangles import node_triangle_values, node_triangle_variance_estimates

__all__ = ["local_clustering", "node_wedge_values"]


def node_wedge_values(noisy: GraphSums, channel: Channel) -> FloatArray:
    """The unbiased number of 2-stars at each node, e_2 of its row."""
    ones = noisy.graph.degrees.astype(np.float64)
    zeros = noisy.graph.n - 1 - ones
    alpha, beta = float(channel.alpha), float(channel.beta)
    pairs_of_ones, pairs_of_zeros = ones * (ones - 1) / 2, zeros * (zeros - 1) / 2
    total: FloatArray = (
        alpha**2 * pairs_of_ones + alpha * beta * ones * zeros + beta**2 * pairs_of_zeros
    )
    return total


def local_clustering(noisy: GraphSums, channel: Channel) -> list[RatioAnswer]:
    """The parts of the coefficient of each node."""
    # The variance of t̂ − R·ŵ is a square in R, so three ratios give all its parts.
    at = [node_triangle_variance_estimates(noisy, channel, float(r)) for r in (-1, 0, 1)]
    pairs, v0 = math.comb(noisy.graph.n - 1, 2), float(channel.weights.v0)
    top = np.maximum(at[1], v0**3 * pairs)
    bottom = np.maximum((at[0] + at[2]) / 2 - at[1], v0**2 * pairs)
    limit = np.sqrt(top * bottom)
    parts = (
        node_triangle_values(noisy, channel),
        node_wedge_values(noisy, channel),
        top,
        bottom,
        np.clip((at[0] - at[2]) / 4, -limit, limit),
    )
    return [RatioAnswer(*each) for each in np.column_stack(parts).tolist()]
