use std::ops::Range;

use super::*;
use crate::crypto::agreement::expand;

const VIEW: [u8; 32] = [9; 32];

fn seed(name: &str) -> [u8; 32] {
    expand(b"tests", b"seed", name.as_bytes())
}

fn member_seeds(place: usize) -> Seeds {
    let held = |c: usize| (c != place).then(|| seed(&format!("component {c}")));
    Seeds::new(std::array::from_fn(held), VIEW)
}

fn outside_seeds(silo: usize, held: impl Fn(usize) -> bool) -> Seeds {
    let travels = vector_component(Owner::Outside, silo);
    let one = |c: usize| (c != travels && held(c)).then(|| seed(&format!("silo {silo}, {c}")));
    Seeds::new(std::array::from_fn(one), VIEW)
}

fn random_words(name: &str, count: usize) -> Vec<u64> {
    let seeds = Seeds::new([Some(seed(name)), None, None, None], VIEW);
    seeds.words(0, 0, Purpose::Coin { place: 0 }, count)
}

/// The four members of one chunk after their inputs.
fn members(circuit: &Circuit, bits: &[Vec<u64>], pairs: usize) -> Vec<(Chunk, Seeds)> {
    let mut all: Vec<_> = (0..MEMBERS)
        .map(|place| {
            (
                Chunk::new(circuit, place, VIEW, 3, pairs),
                member_seeds(place),
            )
        })
        .collect();
    for (silo, bits) in bits.iter().enumerate() {
        let vector = match circuit.owners()[silo] {
            Owner::Member(own) => {
                let (chunk, seeds) = &mut all[own];
                chunk.share(circuit, seeds, silo, bits)
            }
            Owner::Outside => {
                let hidden = outside_seeds(silo, |_| true).hide(silo, 3, bits);
                hidden.iter().flat_map(|word| word.to_le_bytes()).collect()
            }
        };
        for (place, (chunk, _)) in all.iter_mut().enumerate() {
            if chunk.holds(circuit, silo) && circuit.owners()[silo] != Owner::Member(place) {
                chunk.take(silo, &vector).unwrap();
            }
        }
    }
    for a in 0..MEMBERS {
        for b in others(a) {
            let digest = |x: usize, y: usize| all[x].0.inputs_digest(circuit, y);
            assert_eq!(digest(a, b), digest(b, a));
        }
    }
    for (place, (chunk, seeds)) in all.iter_mut().enumerate() {
        assert!(chunk.complete(circuit));
        let outside: Vec<_> = (circuit.owners().iter().enumerate())
            .map(|(silo, owner)| {
                (*owner == Owner::Outside).then(|| outside_seeds(silo, |c| c != place))
            })
            .collect();
        let outside: Vec<_> = outside.iter().map(Option::as_ref).collect();
        chunk.begin(circuit, seeds, &outside);
    }
    all
}

fn layer(circuit: &Circuit, all: &mut [(Chunk, Seeds)]) -> Vec<Layer> {
    all.iter_mut()
        .map(|(chunk, seeds)| chunk.speak(circuit, seeds))
        .collect()
}

fn hear(circuit: &Circuit, all: &mut [(Chunk, Seeds)], sent: &[Layer]) -> Vec<Result<(), Fault>> {
    all.iter_mut()
        .enumerate()
        .map(|(place, (chunk, _))| chunk.hear(circuit, std::array::from_fn(|s| &*sent[s][place])))
        .collect()
}

fn result(circuit: &Circuit, bits: &[Vec<u64>], pairs: usize) -> Vec<u64> {
    let mut all = members(circuit, bits, pairs);
    for _ in 0..circuit.layers() {
        let sent = layer(circuit, &mut all);
        for (place, (chunk, _)) in all.iter().enumerate() {
            for other in others(place) {
                let size = chunk.size(circuit, chunk.layer(), place, other);
                assert_eq!(sent[place][other].len(), size);
            }
        }
        assert!(hear(circuit, &mut all, &sent).iter().all(Result::is_ok));
    }
    let said: Vec<Vec<u8>> = all.into_iter().map(|(chunk, _)| chunk.open()).collect();
    opened(&VIEW, 3, pairs, std::array::from_fn(|place| &*said[place])).unwrap()
}

/// Silos 0 to 3 are members, in another order; the others are not.
fn owners(silos: usize) -> Vec<Owner> {
    let order = [2, 0, 3, 1];
    let owner = |silo: usize| {
        order
            .get(silo)
            .map_or(Owner::Outside, |m| Owner::Member(*m))
    };
    (0..silos).map(owner).collect()
}

/// The coin that all four members' seeds give, computed from all components at once.
fn coin_of(coin: &[bool], words: usize) -> Vec<u64> {
    let mut less = vec![0u64; words];
    for (place, digit) in coin.iter().enumerate() {
        let mut bit = vec![0; words];
        for c in 0..MEMBERS {
            let seeds = member_seeds((c + 1) % MEMBERS);
            seeds.add(c, 3, Purpose::Coin { place }, &mut bit);
        }
        for (less, bit) in less.iter_mut().zip(bit) {
            *less = if *digit { !bit | *less } else { !bit & *less };
        }
    }
    less
}

#[test]
fn routes_use_every_direction_once() {
    for parity in 0..2 {
        let mut pairs: Vec<_> = Route::all()
            .filter(|route| route.parity == parity)
            .map(|r| (r.receiver.min(r.other), r.receiver.max(r.other)))
            .collect();
        pairs.sort_unstable();
        assert_eq!(pairs, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]);
    }
    for route in Route::all() {
        let mut all = [route.sender, route.hasher, route.receiver, route.other];
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3]);
    }
    // A member hashes for a receiver what exactly one sender sends, so one hash a message is enough.
    for receiver in 0..MEMBERS {
        let mut hashers: Vec<_> = others(receiver)
            .map(|sender| Route::new(sender, receiver).hasher)
            .collect();
        hashers.sort_unstable();
        assert!(hashers.into_iter().eq(others(receiver)));
    }
}

#[test]
fn union_and_coin() {
    for silos in 1..=9 {
        for coin in [vec![true], vec![true, true, false, true], vec![true; 6]] {
            for pairs in [1, 64, 200] {
                let circuit = Circuit::new(owners(silos), coin.clone()).unwrap();
                let words = pairs_words(pairs);
                let bits: Vec<_> = (0..silos)
                    .map(|i| {
                        let (a, b) = (
                            random_words(&format!("a{i}"), words),
                            random_words("b", words),
                        );
                        let both = |(a, b): (&u64, &u64)| a & b;
                        a.iter().zip(&b).map(both).collect::<Vec<u64>>()
                    })
                    .collect();
                let flips = coin_of(&coin, words);
                let mut expected: Vec<u64> = (0..words)
                    .map(|w| bits.iter().fold(0, |sum, b| sum | b[w]) ^ flips[w])
                    .collect();
                if pairs % 64 != 0 {
                    expected[words - 1] &= (1 << (pairs % 64)) - 1;
                }
                assert_eq!(result(&circuit, &bits, pairs), expected, "{silos} silos");
            }
        }
    }
}

fn pairs_words(pairs: usize) -> usize {
    pairs.div_ceil(64)
}

/// Any flipped bit of any message or hash, in these layers: its receiver refuses it, and has used
/// nothing of the layer.
fn falsify(circuit: &Circuit, bits: &[Vec<u64>], layers: Range<usize>, step: usize) {
    let mut tried = 0;
    for at in layers {
        for sender in 0..MEMBERS {
            for receiver in others(sender) {
                let size = members(circuit, bits, 64)[0]
                    .0
                    .size(circuit, at, sender, receiver);
                for byte in (0..size).step_by(step) {
                    let mut all = members(circuit, bits, 64);
                    for _ in 0..at {
                        let sent = layer(circuit, &mut all);
                        hear(circuit, &mut all, &sent);
                    }
                    let mut sent = layer(circuit, &mut all);
                    sent[sender][receiver][byte] ^= 1 << (byte % 8);
                    let said = hear(circuit, &mut all, &sent);
                    for (place, said) in said.iter().enumerate() {
                        let refused = matches!(said, Err(Fault::Mismatch(..)));
                        assert_eq!(refused, place == receiver);
                    }
                    assert_eq!(all[receiver].0.layer(), at);
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 50);
}

#[test]
fn every_falsified_message_is_refused_before_use() {
    let circuit = Circuit::new(owners(5), vec![true, false, true]).unwrap();
    let bits: Vec<_> = (0..5).map(|i| random_words(&format!("c{i}"), 1)).collect();
    falsify(&circuit, &bits, 0..circuit.layers(), 9);
}

#[test]
fn wrong_sizes_and_openings() {
    let circuit = Circuit::new(owners(4), vec![true]).unwrap();
    let bits = vec![vec![5u64]; 4];
    let mut all = members(&circuit, &bits, 64);
    let mut sent = layer(&circuit, &mut all);
    sent[1][2].push(0);
    let said = hear(&circuit, &mut all, &sent);
    assert_eq!(said[2], Err(Fault::Size));
    assert_eq!(all[2].0.take(0, &[0; 7]), Err(Fault::Size));
    let vector = 7u64.to_le_bytes();
    let [low, high] =
        [[2, 3], [0, 1]].map(|half| opening::digest(opening::BITS, &VIEW, 0, &half, &vector));
    let good: [&[u8]; 4] = [&vector, &low, &vector, &high];
    assert_eq!(opened(&VIEW, 0, 64, good), Ok(vec![0]));
    assert_eq!(
        opened(&VIEW, 0, 64, [&vector, &high, &vector, &low]),
        Err(Fault::Mismatch(0, 1))
    );
    assert_eq!(opened(&VIEW, 2, 64, good), Err(Fault::Mismatch(0, 1)));
    assert_eq!(opened(&VIEW, 1, 64, good), Err(Fault::Size));
}

// --- numbers ----------------------------------------------------------------------------------

/// The numbers of all members after a circuit that converts, and what they stand for.
fn converted(circuit: &Circuit, bits: &[Vec<u64>], pairs: usize) -> (Vec<Numbers>, Vec<u64>) {
    let mut all = members(circuit, bits, pairs);
    for _ in 0..circuit.layers() {
        let sent = layer(circuit, &mut all);
        assert!(hear(circuit, &mut all, &sent).iter().all(Result::is_ok));
    }
    let numbers: Vec<Numbers> = all
        .into_iter()
        .map(|(chunk, _)| chunk.numbers().unwrap())
        .collect();
    let values = values(&numbers);
    (numbers, values)
}

fn values(numbers: &[Numbers]) -> Vec<u64> {
    let width = numbers[0].width;
    for component in 0..MEMBERS {
        let [one, other, last] = [1, 2, 3].map(|step| &numbers[(component + step) % MEMBERS]);
        for other in [other, last] {
            let same = one.components[component]
                .iter()
                .zip(&other.components[component]);
            assert!(same.into_iter().all(|(a, b)| (a ^ b) & low(width) == 0));
        }
    }
    let all = |at: usize| {
        let sum = numbers[0].components[1..].iter();
        sum.fold(numbers[1].components[0][at], |sum, c| {
            sum.wrapping_add(c[at])
        }) & low(width)
    };
    (0..numbers[0].len()).map(all).collect()
}

use super::count::zero;
use super::numbers::{centred, low};

#[test]
fn bits_become_numbers() {
    for (silos, width, pairs) in [
        (1, 1, 64),
        (2, 3, 70),
        (4, 5, 1000),
        (7, 8, 64),
        (5, 6, 129),
    ] {
        let circuit = Circuit::counting(owners(silos), width).unwrap();
        let words = pairs_words(pairs);
        let bits: Vec<_> = (0..silos)
            .map(|i| random_words(&format!("n{i}"), words))
            .collect();
        let (_, found) = converted(&circuit, &bits, pairs);
        for (at, number) in found.iter().enumerate().take(pairs) {
            let bit = bits
                .iter()
                .fold(0, |sum, b| sum | b[at / 64] >> (at % 64) & 1);
            assert_eq!(*number, bit, "{silos} silos, {width} bytes, pair {at}");
        }
    }
}

/// Every digit is one exactly where the random bits of its places, as a number, are below k.
#[test]
fn digits_of_noise() {
    for (coins, count) in [
        (vec![vec![true]], 3),
        (vec![vec![true, false, true], vec![false, true, false]], 65),
        (
            (0..5)
                .map(|d| (0..37).map(|p| (p * 7 + d) % 3 != 0).collect())
                .collect::<Vec<Vec<bool>>>(),
            100,
        ),
    ] {
        let circuit = Circuit::noise(coins.clone(), count, 4).unwrap();
        let (numbers, found) = converted(&circuit, &[], count);
        let digits = circuit.digits().unwrap();
        let block = 64 * digits.digit_words();
        for (number, digit) in coins.iter().chain(&coins).enumerate() {
            let mut less = vec![0u64; digits.digit_words()];
            for (place, one) in digit.iter().enumerate() {
                let mut bit = vec![0; digits.words()];
                for c in 0..MEMBERS {
                    let seeds = member_seeds((c + 1) % MEMBERS);
                    seeds.add(c, 3, Purpose::Coin { place }, &mut bit);
                }
                let bit = &bit[number * digits.digit_words()..][..digits.digit_words()];
                for (less, bit) in less.iter_mut().zip(bit) {
                    *less = if *one { !bit | *less } else { !bit & *less };
                }
            }
            for at in 0..block {
                let expected = less[at / 64] >> (at % 64) & 1;
                assert_eq!(found[number * block + at], expected);
            }
        }
        let sums: Vec<Numbers> = numbers.iter().map(|one| one.of_digits(digits)).collect();
        let summed = centred(&values(&sums), 4);
        for (at, sum) in summed.iter().enumerate() {
            let part = |from: usize| -> i64 {
                let digit = |d: usize| found[(from + d) * block + at].cast_signed() << d;
                (0..coins.len()).map(digit).sum()
            };
            assert_eq!(*sum, part(0) - part(coins.len()));
        }
    }
}

#[test]
fn falsified_numbers_are_refused_before_use() {
    let circuit = Circuit::counting(owners(2), 2).unwrap();
    let bits = vec![random_words("x", 1), random_words("y", 1)];
    falsify(&circuit, &bits, circuit.gate_layers()..circuit.layers(), 13);
}

/// Degrees, edges, 2-stars and triangles of random graphs, from the members' summands.
#[test]
fn counts_without_a_message() {
    for (n, width) in [(3, 2), (9, 3), (40, 5)] {
        let pairs = n * (n - 1) / 2;
        let circuit = Circuit::counting(owners(4), width).unwrap();
        let bits: Vec<_> = (0..4)
            .map(|i| random_words(&format!("g{i}"), pairs_words(pairs)))
            .collect();
        let bits: Vec<Vec<u64>> = bits
            .iter()
            .map(|b| b.iter().map(|w| w & w >> 7 & w << 5).collect())
            .collect();
        let (numbers, found) = converted(&circuit, &bits, pairs);
        let mut edges = vec![vec![0u64; n]; n];
        let both = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
        for ((i, j), edge) in both.zip(&found) {
            (edges[i][j], edges[j][i]) = (*edge, *edge);
        }
        let degrees: Vec<u64> = edges.iter().map(|row| row.iter().sum()).collect();
        let labels: Vec<u32> = (0..n as u32).map(|i| i * i % 3).collect();
        let mut mixing = vec![0u64; 6];
        for i in 0..n {
            for j in i + 1..n {
                let (a, b) = (labels[i].min(labels[j]), labels[i].max(labels[j]));
                let types = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)];
                let place = types.iter().position(|each| *each == (a, b)).unwrap();
                mixing[place] += edges[i][j];
            }
        }
        let mut six = 0;
        for i in 0..n {
            for j in 0..n {
                six += (0..n)
                    .map(|k| edges[i][j] * edges[j][k] * edges[k][i])
                    .sum::<u64>();
            }
        }
        let mut counts = vec![];
        for (place, numbers) in numbers.iter().enumerate() {
            let mut count = Count::new(place, n, width, true);
            assert!(Types::new(vec![0, 3], 3).is_none());
            assert!(count.by_type(Types::new(vec![0], 3).unwrap()).is_none());
            count.by_type(Types::new(labels.clone(), 3).unwrap());
            let cut = pairs / 3;
            let mut first = Numbers::zeros(place, width, cut);
            let mut rest = Numbers::zeros(place, width, pairs - cut);
            for c in others(place) {
                first.components[c].copy_from_slice(&numbers.components[c][..cut]);
                rest.components[c].copy_from_slice(&numbers.components[c][cut..pairs]);
            }
            count.add(0, cut, &first).unwrap();
            count.add(cut, pairs - cut, &rest).unwrap();
            assert!(count.add(cut + 1, pairs - cut, &rest).is_none());
            count.contract(0..n / 2).unwrap();
            count.contract(n / 2..n).unwrap();
            counts.push(count);
        }
        let sum = |part: fn(&Count) -> u64| {
            let all = counts.iter().fold(0u64, |sum, c| sum.wrapping_add(part(c)));
            all & low(width)
        };
        assert_eq!(sum(Count::triangles), six);
        let stars: u64 = degrees.iter().map(|d| d * (d - d.min(&1))).sum();
        assert_eq!(sum(Count::two_stars), stars);
        let shared = |shares: fn(&Count) -> Shares| {
            let of = |(place, count): (usize, &Count)| Numbers::new(place, width, shares(count));
            values(&counts.iter().enumerate().map(of).collect::<Vec<_>>())
        };
        assert_eq!(shared(|count| count.degrees().clone()), degrees);
        assert_eq!(shared(|count| count.mixing().unwrap().clone()), mixing);
        assert_eq!(shared(Count::edges), [degrees.iter().sum::<u64>() / 2]);
    }
}

#[test]
fn openings_of_numbers() {
    let circuit = Circuit::counting(owners(3), 3).unwrap();
    let bits: Vec<_> = (0..3).map(|i| random_words(&format!("o{i}"), 1)).collect();
    let (numbers, found) = converted(&circuit, &bits, 64);
    let found: Vec<i64> = found.iter().map(|x| x.cast_signed()).collect();
    for phase in 0..2 {
        let said: Vec<Vec<u8>> = numbers.iter().map(|one| one.open(&VIEW, phase)).collect();
        let came: [&[u8]; MEMBERS] = std::array::from_fn(|place| &*said[place]);
        assert_eq!(opened_numbers(&VIEW, phase, 64, 3, came), Ok(found.clone()));
        assert!(opened_numbers(&VIEW, phase + 2, 64, 3, came).is_err());
        for place in 0..MEMBERS {
            let mut wrong = said.clone();
            wrong[place][5] ^= 1;
            let came: [&[u8]; MEMBERS] = std::array::from_fn(|place| &*wrong[place]);
            let refused = opened_numbers(&VIEW, phase, 64, 3, came);
            assert!(matches!(refused, Err(Fault::Mismatch(..))));
        }
        for (place, own) in numbers.iter().enumerate() {
            let told = |step: usize| numbers[(place + step) % MEMBERS].tell(&VIEW, phase, place);
            let (component, hash) = (told(1).unwrap(), told(2).unwrap());
            assert_eq!(told(3), None);
            assert_eq!(
                own.learn(&VIEW, phase, &component, &hash),
                Ok(found.clone())
            );
            let mut wrong = component.clone();
            wrong[7] ^= 4;
            let refused = own.learn(&VIEW, phase, &wrong, &hash);
            assert_eq!(
                refused,
                Err(Fault::Mismatch((place + 1) % 4, (place + 2) % 4))
            );
            assert_eq!(
                own.learn(&VIEW, phase, &component[1..], &hash),
                Err(Fault::Size)
            );
        }
    }
}

#[test]
fn shares_of_zero() {
    for output in 0..3 {
        let parts: Vec<u64> = (0..MEMBERS)
            .map(|place| zero(&member_seeds(place), place, output))
            .collect();
        assert_eq!(parts.iter().fold(0u64, |sum, x| sum.wrapping_add(*x)), 0);
        assert!(parts.iter().all(|part| *part != 0));
    }
}

#[test]
fn noise_in_parts() {
    let own: Vec<Vec<i64>> = vec![vec![3, -8], vec![0, 70_000], vec![-1, 1], vec![5, -5]];
    let mut all: Vec<Parts> = (0..MEMBERS).map(|i| Parts::new(i, VIEW, 9, 2, 3)).collect();
    for member in 0..MEMBERS {
        let words: Vec<u64> = own[member].iter().map(|x| x.cast_unsigned()).collect();
        let vector = all[member].share(&member_seeds(member), &words);
        assert_eq!(vector.len(), 6);
        for place in others(member).filter(|place| *place != (member + 1) % MEMBERS) {
            assert!(!all[place].complete());
            assert_eq!(all[place].take(member, &vector[1..]), Err(Fault::Size));
            all[place].take(member, &vector).unwrap();
        }
    }
    for a in 0..MEMBERS {
        assert!(all[a].complete());
        for b in others(a) {
            assert_eq!(all[a].digest(b), all[b].digest(a));
        }
    }
    let sums: Vec<Numbers> = all
        .into_iter()
        .enumerate()
        .map(|(place, parts)| parts.numbers(&member_seeds(place)))
        .collect();
    assert_eq!(centred(&values(&sums), 3), [7, 69_988]);
}
