//! Dealing the edges of one graph to silos that overlap.

use chacha20::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

/// A uniform integer below `bound`, without bias: values past the last whole multiple are drawn
/// again.
pub fn below(rng: &mut impl Rng, bound: u64) -> u64 {
    assert!(bound > 0, "nothing is below zero");
    let limit = u64::MAX - u64::MAX % bound;
    loop {
        let word = rng.next_u64();
        if word < limit {
            return word % bound;
        }
    }
}

/// How many edges go where. All edges of the union beyond `shared` have one holder.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Edges of the graph.
    pub edges: usize,
    /// Silos, 2 to 64.
    pub silos: usize,
    /// Edges that at least one silo holds.
    pub union: usize,
    /// Edges of the union that several silos hold.
    pub shared: usize,
    /// Holders of all shared edges together: from two to all silos an edge.
    pub holders: usize,
}

impl Plan {
    /// Whether the counts fit together.
    pub fn is_sound(&self) -> bool {
        (2..=64).contains(&self.silos)
            && self.shared <= self.union
            && self.union <= self.edges
            && self.edges < u32::MAX as usize
            && self.holders >= 2 * self.shared
            && self.holders <= self.silos * self.shared
    }
}

/// The holders of each edge as a bit mask, zero where no silo holds it.
///
/// Which edges are shared, and which silos hold a shared edge, is uniform; single edges then go
/// at random to wherever they even out the sizes.
pub fn deal(plan: &Plan, seed: [u8; 32]) -> Vec<u64> {
    assert!(plan.is_sound(), "counts of a split do not fit together");
    let mut rng = ChaCha20Rng::from_seed(seed);
    let mut masks = vec![0u64; plan.edges];
    let order = sample(&mut rng, plan.edges, plan.union);
    let (shared, single) = order.split_at(plan.shared);
    let mut sizes = vec![0usize; plan.silos];
    for (number, &edge) in shared.iter().enumerate() {
        let extra = usize::from(number < plan.holders % plan.shared);
        for silo in sample(&mut rng, plan.silos, plan.holders / plan.shared + extra) {
            masks[edge as usize] |= 1 << silo;
            sizes[silo as usize] += 1;
        }
    }
    // The order of `single` is random already, so it may be dealt out in runs.
    let mut rest = single;
    for (silo, count) in evened(&mut rng, &sizes, single.len())
        .into_iter()
        .enumerate()
    {
        let (mine, others) = rest.split_at(count);
        mine.iter()
            .for_each(|&edge| masks[edge as usize] = 1 << silo);
        rest = others;
    }
    masks
}

/// The first `count` places of a random order of 0..n (Fisher and Yates).
fn sample(rng: &mut impl Rng, n: usize, count: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    for place in 0..count {
        let other = place + below(rng, (n - place) as u64) as usize;
        order.swap(place, other);
    }
    order.truncate(count);
    order
}

/// How many of `singles` each silo gets so that the sizes end as even as they can.
fn evened(rng: &mut impl Rng, sizes: &[usize], singles: usize) -> Vec<usize> {
    let filled = |level: usize| {
        sizes
            .iter()
            .map(|size| level.saturating_sub(*size))
            .sum::<usize>()
    };
    let (mut low, mut high) = (0, sizes.iter().max().unwrap_or(&0) + singles + 1);
    while high - low > 1 {
        let level = low.midpoint(high);
        if filled(level) <= singles {
            low = level
        } else {
            high = level
        }
    }
    let mut counts: Vec<usize> = sizes.iter().map(|size| low.saturating_sub(*size)).collect();
    let open: Vec<usize> = (0..sizes.len())
        .filter(|&silo| sizes[silo] <= low)
        .collect();
    for place in sample(rng, open.len(), singles - filled(low)) {
        counts[open[place as usize]] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Fixed(Vec<u64>);

    impl rand_core::TryRng for Fixed {
        type Error = rand_core::Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
            Ok(self.0.remove(0) as u32)
        }
        fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
            Ok(self.0.remove(0))
        }
        fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Self::Error> {
            unreachable!()
        }
    }

    #[test]
    fn the_biased_tail_is_drawn_again() {
        // 2^64 = 1 (mod 3): the last word would make 0 a little more likely.
        assert_eq!(below(&mut Fixed(vec![u64::MAX, 7]), 3), 1);
        assert_eq!(below(&mut Fixed(vec![u64::MAX - 1]), 3), 2);
    }

    proptest! {
        #[test]
        fn a_deal_keeps_its_plan(
            edges in 1usize..400,
            silos in 2usize..=64,
            parts in (0.0f64..=1.0, 0.0f64..=1.0, 0.0f64..=1.0),
            seed in any::<[u8; 32]>(),
        ) {
            let union = (edges as f64 * parts.0) as usize;
            let shared = (union as f64 * parts.1) as usize;
            let spread = shared * (silos - 2);
            let holders = 2 * shared + (spread as f64 * parts.2) as usize;
            let plan = Plan { edges, silos, union, shared, holders };
            let masks = deal(&plan, seed);
            let count = |test: &dyn Fn(u32) -> bool| {
                masks.iter().filter(|mask| test(mask.count_ones())).count()
            };
            prop_assert_eq!(count(&|held| held > 0), union);
            prop_assert_eq!(count(&|held| held > 1), shared);
            let total: u32 = masks.iter().map(|mask| mask.count_ones()).sum();
            prop_assert_eq!(total as usize, holders + union - shared);
            if let Some(least) = holders.checked_div(shared) {
                prop_assert_eq!(count(&|held| held > 1 && (held as usize) < least), 0);
                prop_assert_eq!(count(&|held| held as usize > least + 1), 0);
            }
            prop_assert_eq!(masks, deal(&plan, seed));
        }

        #[test]
        fn singles_even_out(
            sizes in prop::collection::vec(0usize..50, 2..20),
            singles in 0usize..2000,
        ) {
            let mut rng = ChaCha20Rng::from_seed([7; 32]);
            let counts = evened(&mut rng, &sizes, singles);
            prop_assert_eq!(counts.iter().sum::<usize>(), singles);
            let after: Vec<usize> = sizes.iter().zip(&counts).map(|(a, b)| a + b).collect();
            let least = *after.iter().min().unwrap();
            for (silo, count) in counts.iter().enumerate() {
                prop_assert!(*count == 0 || after[silo] <= least + 1);
            }
        }
    }
}
