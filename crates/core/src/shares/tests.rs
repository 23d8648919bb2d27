//! Exact: every outcome of the dealt randomness on tiny inputs, through the very functions.
//!
//! Shares are words mod 2^64, and every step is a polynomial in them, so taking all words mod a
//! small power of two is the same protocol over a smaller ring, and that one can be enumerated.

use std::collections::HashMap;
use std::hash::Hash;

use super::bits::{self, Triple};
use super::dealing::Dealing;
use super::dealt::Dealt;
use super::stream::{Label, Seed};
use super::union::{Union, depth, gates};
use super::{dabits, squares, triangles, zeros};
use crate::graph::simd::Level;
use crate::symmetric::matrix::Triangle;
use crate::symmetric::square::rows_of_square;

type Counts<K> = HashMap<K, u32>;

fn count<K: Hash + Eq>(views: impl Iterator<Item = K>) -> Counts<K> {
    let mut counts = Counts::new();
    views.for_each(|view| *counts.entry(view).or_default() += 1);
    counts
}

/// Bit `variable` of the lane's own number, in 2^size lanes: all outcomes of `size` bits.
fn outcomes(size: usize, variable: usize) -> Vec<u64> {
    let lane = |k: usize| (k >> variable & 1) as u64;
    (0..1usize << size)
        .step_by(64)
        .map(|word| (0..64).map(|k| lane(word + k) << k).sum())
        .collect()
}

fn lane(words: &[u64], k: usize) -> u64 {
    words[k / 64] >> (k % 64) & 1
}

/// The AND-tree over all outcomes of its triples: for each silo its material, then what was
/// opened, then each silo's share of the union bit.
struct Tree {
    material: Vec<Vec<Vec<u64>>>,
    opened: Vec<Vec<u64>>,
    shares: Vec<Vec<u64>>,
}

fn tree(silos: usize, inputs: &[bool]) -> (usize, Tree) {
    let size = (3 * silos - 1) * (silos - 1);
    let mut next = 0..size;
    let words = outcomes(size, 0).len();
    let mut drawn = || outcomes(size, next.next().unwrap());
    let mut triples: Vec<Vec<Triple>> = (0..silos).map(|_| vec![]).collect();
    for _ in 0..silos - 1 {
        let lefts: Vec<_> = (0..silos).map(|_| drawn()).collect();
        let rights: Vec<_> = (0..silos).map(|_| drawn()).collect();
        let mut products: Vec<_> = (0..silos - 1).map(|_| drawn()).collect();
        let xor = |all: &[Vec<u64>]| {
            let zero = vec![0; words];
            all.iter().fold(zero, |sum, x| bits::masked(&sum, x))
        };
        let mut last = xor(&products);
        bits::correction(&xor(&lefts), &xor(&rights), &mut last);
        products.push(last);
        let shares = lefts.into_iter().zip(rights).zip(products);
        for (own, ((left, right), product)) in triples.iter_mut().zip(shares) {
            own.push(Triple {
                left,
                right,
                product,
            });
        }
    }
    let held = |i: usize| vec![if inputs[i] { u64::MAX } else { 0 }; words];
    let mut unions: Vec<_> = (0..silos).map(|i| Union::new(i, silos, &held(i))).collect();
    let mut all_opened = vec![];
    for level in 0..depth(silos) {
        let now = gates(silos, level);
        let opened = unions
            .iter()
            .zip(&triples)
            .map(|(u, t)| u.open(&t[now.clone()]));
        let opened = opened.reduce(|a, b| bits::masked(&a, &b)).unwrap();
        for (union, own) in unions.iter_mut().zip(&triples) {
            union.close(&opened, &own[now.clone()]);
        }
        all_opened.extend(opened.chunks(words).map(<[u64]>::to_vec));
    }
    let flat = |own: Vec<Triple>| own.into_iter().flat_map(|t| [t.left, t.right, t.product]);
    let made = Tree {
        material: triples.into_iter().map(|own| flat(own).collect()).collect(),
        opened: all_opened,
        shares: unions.into_iter().map(Union::share).collect(),
    };
    (1 << size, made)
}

/// What all silos but one see, in one lane: a bit each.
fn view(tree: &Tree, honest: usize, k: usize) -> u64 {
    let others = tree
        .material
        .iter()
        .enumerate()
        .filter(|(i, _)| *i != honest);
    let material = others.flat_map(|(_, own)| own.iter());
    let seen = material.chain(&tree.opened);
    seen.fold(0, |key, words| key << 1 | lane(words, k))
}

#[test]
fn unions_open_to_the_or_and_show_nothing_else() {
    for silos in [2, 3] {
        for honest in 0..silos {
            for others in 0..1usize << (silos - 1) {
                let made = [false, true].map(|bit| {
                    let mut inputs: Vec<bool> =
                        (0..silos - 1).map(|i| others >> i & 1 == 1).collect();
                    inputs.insert(honest, bit);
                    let (lanes, tree) = tree(silos, &inputs);
                    let expected = u64::from(inputs.contains(&true));
                    for k in 0..lanes {
                        let sum = tree
                            .shares
                            .iter()
                            .fold(0, |sum, share| sum ^ lane(share, k));
                        assert_eq!(sum, expected);
                    }
                    let without = count((0..lanes).map(|k| view(&tree, honest, k)));
                    let shown = |k| (view(&tree, honest, k), lane(&tree.shares[honest], k));
                    (without, count((0..lanes).map(shown)))
                });
                // What is dealt and opened does not depend on the honest silo's bit at all …
                assert_eq!(made[0].0, made[1].0);
                // … and with its share of the answer only on the answer.
                assert_eq!(made[0].1 == made[1].1, others != 0);
            }
        }
    }
}

/// Numbers below `range`, one for each variable: all outcomes.
fn tuples(range: u64, variables: usize) -> impl Iterator<Item = Vec<u64>> {
    (0..range.pow(variables as u32)).map(move |outcome| {
        (0..variables as u32)
            .map(|v| outcome / range.pow(v) % range)
            .collect()
    })
}

#[test]
fn dabits_turn_bits_into_words_and_show_nothing() {
    const SILOS: usize = 3;
    // Mod 4 a wrong sign would not show: 1 + 2c is 1 − 2c.
    const RING: u64 = 8;
    for honest in 0..SILOS {
        let made = [0u64, 1].map(|x| {
            let mut views = vec![];
            for bits in tuples(2, 2 * SILOS - 1) {
                for words in tuples(RING, SILOS - 1) {
                    let (r, mut shares) = (&bits[..SILOS], bits[SILOS..].to_vec());
                    shares.push(shares.iter().fold(x, |sum, share| sum ^ share));
                    let mut arithmetic = words.clone();
                    let mut last = [words.iter().sum::<u64>()];
                    dabits::correction(&[r.iter().fold(0, |a, b| a ^ b)], &mut last);
                    arithmetic.push(last[0] % RING);
                    let opened =
                        (0..SILOS).fold(0, |c, i| c ^ bits::masked(&[shares[i]], &[r[i]])[0]);
                    let material: Vec<_> = (0..SILOS)
                        .filter(|i| *i != honest)
                        .map(|i| (r[i], shares[i], arithmetic[i]))
                        .collect();
                    let total = arithmetic.iter().enumerate().fold(0u64, |sum, (i, share)| {
                        let mut own = [*share];
                        dabits::arithmetic(&[opened], &mut own, i == 0);
                        sum.wrapping_add(own[0])
                    });
                    assert_eq!(total % RING, x);
                    views.push((material, opened));
                }
            }
            count(views.into_iter())
        });
        assert_eq!(made[0], made[1]);
    }
}

/// The two matrix functions, each called once for equal arguments.
#[derive(Default)]
struct Once {
    squares: HashMap<Vec<u64>, Vec<u64>>,
    contracted: HashMap<(Vec<u64>, Vec<u64>), u64>,
}

impl Once {
    fn square(&mut self, words: &[u64]) -> Vec<u64> {
        let matrix = Triangle::new(3, words).unwrap();
        let make = || rows_of_square(matrix, 0..3, Level::best());
        let made = self.squares.entry(words.to_vec());
        made.or_insert_with(make).clone()
    }

    fn contract(&mut self, words: &[u64], weights: &[u64]) -> u64 {
        let matrix = Triangle::new(3, words).unwrap();
        let made = self.contracted.entry((words.to_vec(), weights.to_vec()));
        *made.or_insert_with(|| triangles::contract(matrix, 0..3, weights))
    }
}

/// Three nodes, all words mod `ring`, two silos: everything that the silo that is not `honest`
/// does not know is enumerated, everything else is given.
fn cube_views(
    once: &mut Once,
    ring: u64,
    honest: usize,
    x: &[u64],
    own: &[u64],
) -> Counts<(Vec<u64>, Vec<u64>, u64)> {
    let (own_matrix, own_shares) = (&own[..3], &own[3..6]);
    let mut views = vec![];
    // The other silo's R, and the first silo's shares of R² and tr(R³).
    let free = if honest == 0 { 7 } else { 3 };
    for drawn in tuples(ring, free) {
        let mut matrices = [own_matrix, &drawn[..3]];
        let (square, trace) = match honest {
            0 => (drawn[3..6].to_vec(), drawn[6]),
            _ => (own[6..9].to_vec(), own[9]),
        };
        if honest == 0 {
            matrices.swap(0, 1);
        }
        let sum: Vec<u64> = (0..3).map(|k| matrices[0][k] + matrices[1][k]).collect();
        let r2 = once.square(&sum);
        let tr = triangles::trace(triangles::inner(&r2, &sum));
        let squares = [
            square.clone(),
            (0..3).map(|k| r2[k].wrapping_sub(square[k])).collect(),
        ];
        let traces = [trace, tr.wrapping_sub(trace)];
        // Shares of X: the coalition's are given.
        let rest: Vec<u64> = (0..3).map(|k| x[k].wrapping_sub(own_shares[k])).collect();
        let mut shares = [rest, own_shares.to_vec()];
        if honest == 1 {
            shares.swap(0, 1);
        }
        for (share, matrix) in shares.iter_mut().zip(&matrices) {
            triangles::difference(share, matrix);
        }
        let opened: Vec<u64> = (0..3)
            .map(|k| shares[0][k].wrapping_add(shares[1][k]) % ring)
            .collect();
        let outputs: Vec<u64> = (0..2)
            .map(|i| {
                let mut weights = matrices[i].to_vec();
                triangles::weights(&mut weights, &opened, i == 0);
                let contracted = once.contract(&opened, &weights);
                let inner = triangles::inner(&opened, &squares[i]);
                triangles::share(contracted, inner, traces[i]) % ring
            })
            .collect();
        let six = 6 * x[0] * x[1] * x[2];
        assert_eq!((outputs[0] + outputs[1]) % ring, six % ring);
        let dealt = [squares[1 - honest].clone(), vec![traces[1 - honest]]].concat();
        views.push((
            dealt.iter().map(|word| word % ring).collect(),
            opened,
            outputs[honest],
        ));
    }
    count(views.into_iter())
}

#[test]
fn cubes_count_triangles_and_show_nothing_else() {
    // Over Z_2 all that can be given to silo 0, and some for silo 1; over Z_4, where one triangle
    // and none differ, some for both.
    let mut once = Once::default();
    for (ring, step, honest) in [(2, 1, 1), (2, 31, 0), (4, 50_021, 1), (4, 1_000_003, 0)] {
        for own in tuples(ring, 10).step_by(step) {
            let mut views = |x: Vec<u64>| cube_views(&mut once, ring, honest, &x, &own);
            let graphs: Vec<_> = tuples(2, 3).map(&mut views).collect();
            let (triangle, others) = graphs.split_last().unwrap();
            for other in others {
                assert_eq!(*other, others[0], "the same answer, another view");
            }
            // 6 is 2 mod 4, and 0 mod 2.
            assert_eq!(*triangle == others[0], ring == 2);
            let opened = |graph: &Counts<(Vec<u64>, Vec<u64>, u64)>| {
                let mut all = Counts::new();
                for ((dealt, opened, _), times) in graph {
                    *all.entry((dealt.clone(), opened.clone())).or_default() += times;
                }
                all
            };
            assert_eq!(opened(triangle), opened(&others[0]));
        }
    }
}

#[test]
fn squares_are_squares_and_show_nothing() {
    const RING: u64 = 8;
    for own in tuples(RING, 2).step_by(3) {
        let made: Vec<_> = (0..RING)
            .map(|d| {
                let views = tuples(RING, 2).map(|drawn| {
                    // The second silo is the honest one; the first one's share of d is own[0].
                    let (masks, square) = ([own[1], drawn[0]], drawn[1]);
                    let shares = [own[0], d.wrapping_sub(own[0])];
                    let mut last = [square];
                    squares::correction(&[masks[0] + masks[1]], &mut last);
                    let opened = (0..2).fold(0u64, |sum, i| {
                        sum.wrapping_add(squares::masked(&[shares[i]], &[masks[i]])[0])
                    }) % RING;
                    let outputs =
                        [square, last[0]]
                            .iter()
                            .enumerate()
                            .fold(0u64, |sum, (i, own)| {
                                sum.wrapping_add(squares::share(
                                    &[opened],
                                    &[masks[i]],
                                    &[*own],
                                    i == 0,
                                ))
                            });
                    assert_eq!(outputs % RING, d * d % RING);
                    (square, opened)
                });
                count(views)
            })
            .collect();
        assert!(made.iter().all(|views| *views == made[0]));
    }
}

/// The coordinator knows all that was dealt, so the shares of an answer are fixed numbers to it;
/// what it is sent depends on their sum alone.
#[test]
fn the_coordinator_learns_sums_alone() {
    const RING: u64 = 4;
    for silos in [2usize, 3] {
        let pairs: Vec<(usize, usize)> = (0..silos)
            .flat_map(|i| (i + 1..silos).map(move |j| (i, j)))
            .collect();
        let mut laws: HashMap<u64, Counts<Vec<u64>>> = HashMap::new();
        for shares in tuples(RING, silos) {
            let sent = tuples(RING, pairs.len()).map(|drawn| {
                let mut sent = shares.clone();
                for ((i, j), zero) in pairs.iter().zip(&drawn) {
                    zeros::mask(&mut sent[*i..=*i], &[*zero], true);
                    zeros::mask(&mut sent[*j..=*j], &[*zero], false);
                }
                sent.iter().map(|word| word % RING).collect()
            });
            let law = count(sent);
            let sum = shares.iter().sum::<u64>() % RING;
            assert_eq!(law.len() as u64, RING.pow(silos as u32 - 1));
            assert_eq!(*laws.entry(sum).or_insert_with(|| law.clone()), law);
        }
        assert_eq!(laws.len() as u64, RING);
    }
}

/// Corrections are the last silo's shares: with them, all that is dealt is what it should be.
#[test]
fn what_is_dealt_adds_up() {
    let seeds = |m: u8| (0..m).map(|i| Seed::new([i + 1; 32])).collect::<Vec<_>>();
    for m in [2u8, 3, 5] {
        let (n, silos) = (40usize, usize::from(m));
        let dealing = Dealing::new(seeds(m));
        let silo = |i: usize| Dealt::new(Seed::new([i as u8 + 1; 32]), i, silos);
        let parts: Vec<Dealt> = (0..silos).map(silo).collect();
        let sum = |label: Label, at: std::ops::Range<usize>, last: &[u64]| {
            parts.iter().fold(vec![0u64; at.len()], |sum, part| {
                let own = part
                    .corrected()
                    .then_some(last)
                    .filter(|own| !own.is_empty());
                let words = part.corrected_words(label, at.clone(), own);
                sum.iter()
                    .zip(&words)
                    .map(|(a, b)| a.wrapping_add(*b))
                    .collect()
            })
        };
        let pairs = 0..n * (n - 1) / 2;
        let mut matrix = dealing.matrix(n);
        let mut corrections = dealing.matrix_squares(&mut matrix, 0..300);
        corrections.extend(dealing.matrix_squares(&mut matrix, 300..pairs.end));
        let r = sum(Label::Matrix, pairs.clone(), &[]);
        let r2 = sum(Label::MatrixSquare, pairs.clone(), &corrections);
        let whole = Triangle::new(n, &r).unwrap();
        assert_eq!(r2, rows_of_square(whole, 0..n, Level::best()));
        let trace = sum(Label::Trace, 0..1, &[dealing.trace(&matrix).unwrap()]);
        assert_eq!(trace[0], triangles::trace(triangles::inner(&r2, &r)));
        let numbers = sum(Label::Node, 0..n, &[]);
        let squared = sum(Label::NodeSquare, 0..n, &dealing.squares(n));
        assert!(
            numbers
                .iter()
                .zip(&squared)
                .all(|(a, b)| a.wrapping_mul(*a) == *b)
        );
        // What was made is made again the same, from any chunk on.
        assert_eq!(
            dealing.matrix_squares(&mut matrix, 300..310),
            corrections[300..310]
        );
    }
}
