//! Seeded graphs for examples and experiments.

use chacha20::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

use super::sparse::key;
use super::split::below;

/// Keys of a clustered power-law graph on `n` nodes, grown as Holme and Kim describe (Growing
/// scale-free networks with tunable clustering, Phys. Rev. E 65, 026107, 2002).
///
/// It begins with `each` nodes and no edge. Every later node brings `each` edges: the first by
/// preferential attachment; each further one, with probability `closure`, to a neighbour of the
/// node that was last attached to so (which closes a triangle), otherwise, or where no such
/// neighbour is left, by preferential attachment again.
pub fn clustered_power_law(n: u32, each: u32, closure: f64, seed: [u8; 32]) -> Vec<u64> {
    assert!(
        each >= 1 && each < n,
        "a node brings at least one edge, and fewer than all"
    );
    let mut rng = ChaCha20Rng::from_seed(seed);
    // A word of 64 bits is below this with the asked probability, to within 2^-53.
    let threshold = (closure * 18_446_744_073_709_551_616.0) as u128;
    let each = each as usize;
    let mut near: Vec<Vec<u32>> = vec![Vec::new(); n as usize];
    let mut ends: Vec<u32> = Vec::with_capacity(2 * each * n as usize);
    let mut keys = Vec::with_capacity(each * n as usize);
    // `linked[node]` is the last new node that was joined to `node`.
    let mut linked = vec![u32::MAX; n as usize];
    for node in each as u32..n {
        let mut anchor = None;
        let mut links: Vec<u32> = Vec::with_capacity(each);
        while links.len() < each {
            let close = anchor.is_some() && u128::from(rng.next_u64()) < threshold;
            let closing = anchor.filter(|_| close).and_then(|anchor: u32| {
                open_neighbour(&mut rng, &near[anchor as usize], links.len(), |other| {
                    linked[other as usize] != node
                })
            });
            let target = closing.unwrap_or_else(|| {
                let target = loop {
                    let target = if ends.is_empty() {
                        links.len() as u32 // the very first node joins all that are there
                    } else {
                        ends[below(&mut rng, ends.len() as u64) as usize]
                    };
                    if linked[target as usize] != node {
                        break target;
                    }
                };
                anchor = Some(target);
                target
            });
            linked[target as usize] = node;
            links.push(target);
        }
        for &target in &links {
            keys.push(key(node, target));
            near[target as usize].push(node);
            ends.extend([node, target]);
        }
        near[node as usize] = links;
    }
    keys.sort_unstable();
    keys
}

/// A uniform one of `near` for which `open` holds; at most `closed` of them do not.
fn open_neighbour(
    rng: &mut impl Rng,
    near: &[u32],
    closed: usize,
    open: impl Fn(u32) -> bool,
) -> Option<u32> {
    if near.len() > 2 * closed {
        // More than half are open, so drawing until one is takes two draws on average or fewer.
        return Some(loop {
            let other = near[below(rng, near.len() as u64) as usize];
            if open(other) {
                break other;
            }
        });
    }
    let left: Vec<u32> = near.iter().copied().filter(|&other| open(other)).collect();
    (!left.is_empty()).then(|| left[below(rng, left.len() as u64) as usize])
}

#[cfg(test)]
mod tests {
    use super::super::sparse::{is_loop, triangles};
    use super::*;

    fn count(keys: &[u64], n: usize) -> u64 {
        let pairs: Vec<[u32; 2]> = keys
            .iter()
            .map(|&key| [(key >> 32) as u32, key as u32])
            .collect();
        triangles(n, &pairs)
    }

    #[test]
    fn simple_and_of_the_promised_size() {
        for (n, each, closure) in [(2, 1, 1.0), (50, 1, 0.5), (50, 49, 1.0), (400, 6, 0.0)] {
            let keys = clustered_power_law(n, each, closure, [1; 32]);
            assert_eq!(keys.len(), ((n - each) * each) as usize);
            assert!(keys.windows(2).all(|two| two[0] < two[1]));
            assert!(keys.iter().all(|&key| !is_loop(key) && (key as u32) < n));
        }
    }

    #[test]
    fn closure_closes_triangles() {
        let grown = |closure| count(&clustered_power_law(2000, 6, closure, [3; 32]), 2000);
        assert!(grown(0.9) > 3 * grown(0.0));
    }
}
