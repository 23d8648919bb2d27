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
    let said: Vec<Vec<u8>> = all
        .into_iter()
        .map(|(chunk, _)| match chunk.open() {
            Opening::Vector(bytes) => bytes,
            Opening::Hash(hash) => hash.to_vec(),
        })
        .collect();
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

/// Any flipped bit of any message or hash, in any layer: its receiver refuses it, and has used
/// nothing of the layer.
#[test]
fn every_falsified_message_is_refused_before_use() {
    let circuit = Circuit::new(owners(5), vec![true, false, true]).unwrap();
    let bits: Vec<_> = (0..5).map(|i| random_words(&format!("c{i}"), 1)).collect();
    let mut tried = 0;
    for at in 0..circuit.layers() {
        for sender in 0..MEMBERS {
            for receiver in others(sender) {
                let size = members(&circuit, &bits, 64)[0]
                    .0
                    .size(&circuit, at, sender, receiver);
                for byte in (0..size).step_by(9) {
                    let mut all = members(&circuit, &bits, 64);
                    for _ in 0..at {
                        let sent = layer(&circuit, &mut all);
                        hear(&circuit, &mut all, &sent);
                    }
                    let mut sent = layer(&circuit, &mut all);
                    sent[sender][receiver][byte] ^= 1 << (byte % 8);
                    let said = hear(&circuit, &mut all, &sent);
                    let wrong = |(place, said): (usize, &Result<(), Fault>)| {
                        (place == receiver) == matches!(said, Err(Fault::Mismatch(..)))
                    };
                    assert!(said.iter().enumerate().all(wrong));
                    assert_eq!(all[receiver].0.layer(), at);
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 50);
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
    let [low, high] = [[2, 3], [0, 1]].map(|half| opening_digest(&VIEW, 0, half, &vector));
    let good: [&[u8]; 4] = [&vector, &low, &vector, &high];
    assert_eq!(opened(&VIEW, 0, 64, good), Ok(vec![0]));
    assert_eq!(
        opened(&VIEW, 0, 64, [&vector, &high, &vector, &low]),
        Err(Fault::Mismatch(0, 1))
    );
    assert_eq!(opened(&VIEW, 2, 64, good), Err(Fault::Mismatch(0, 1)));
    assert_eq!(opened(&VIEW, 1, 64, good), Err(Fault::Size));
}
