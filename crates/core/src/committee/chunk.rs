//! One member's part of one chunk: from inputs to a noisy bit for each pair, or to numbers.

use std::ops::Range;

use rayon::prelude::*;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::circuit::{Circuit, Digits, Owner};
use super::numbers::{Conversion, Numbers};
use super::seeds::{Purpose, Seeds};
use super::{MEMBERS, Route, opening, others, vector_component};
use crate::crypto::keystream::StreamKey;

/// Words that are worked on at once.
pub(super) const BLOCK: usize = 512;

pub(super) type Hash = [u8; 32];
/// A member's components of a secret; its own is empty.
pub type Shares = [Vec<u64>; MEMBERS];

/// Why a chunk cannot go on.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A message is too long or too short.
    #[error("it has the wrong size")]
    Size,
    /// A message of the first member does not match the hash of the second.
    #[error("members {0} and {1} do not say the same")]
    Mismatch(usize, usize),
}

/// What a member sends to each member in one layer; nothing to itself.
pub type Layer = [Vec<u8>; MEMBERS];

/// A chunk on its way.
pub struct Chunk {
    place: usize,
    number: u64,
    view: Hash,
    words: usize,
    /// The components of every silo's bits that travel, where this member holds them.
    vectors: Vec<Option<Vec<u64>>>,
    /// The nodes of the tree at the present layer; of a tree of comparisons, whether bits are less.
    tree: Vec<Shares>,
    /// Whether they are equal, for a tree of comparisons.
    equal: Vec<Shares>,
    coin: Shares,
    layer: usize,
    /// The outputs of the present layer's gates, as far as they are known.
    outputs: Vec<Shares>,
    /// Begun when all gates are done.
    conversion: Option<Conversion>,
}

impl Chunk {
    /// A chunk of so many pairs, without inputs yet.
    pub fn new(circuit: &Circuit, place: usize, view: Hash, number: u64, pairs: usize) -> Self {
        Self {
            place,
            number,
            view,
            words: circuit.words(pairs),
            vectors: vec![None; circuit.owners().len()],
            tree: vec![],
            equal: vec![],
            coin: Shares::default(),
            layer: 0,
            outputs: vec![],
            conversion: None,
        }
    }

    // --- inputs -----------------------------------------------------------------------------

    /// Shares this member's own bits; returns the vector for the two others that hold it.
    ///
    /// The member's own component is 0. The others come from seeds, but for the one that travels.
    pub fn share(
        &mut self,
        circuit: &Circuit,
        seeds: &Seeds,
        silo: usize,
        bits: &[u64],
    ) -> Vec<u8> {
        let travels = vector_component(circuit.owners()[silo], silo);
        let vector = seeds.without(travels).hide(silo, self.number, bits);
        let bytes = to_bytes(&vector);
        self.vectors[silo] = Some(vector);
        bytes
    }

    /// Whether this member holds the component of a silo's bits that travels.
    pub fn holds(&self, circuit: &Circuit, silo: usize) -> bool {
        vector_component(circuit.owners()[silo], silo) != self.place
    }

    /// Takes the vector of another silo.
    pub fn take(&mut self, silo: usize, bytes: &[u8]) -> Result<(), Fault> {
        let vector = crate::words::read(bytes, self.words).ok_or(Fault::Size)?;
        self.vectors[silo] = Some(vector);
        Ok(())
    }

    /// Whether every vector that this member holds is here.
    pub fn complete(&self, circuit: &Circuit) -> bool {
        let here = |silo: usize| self.vectors[silo].is_some() || !self.holds(circuit, silo);
        (0..circuit.owners().len()).all(here)
    }

    /// The hash of all vectors that this member and another hold. The two compare it before use.
    pub fn inputs_digest(&self, circuit: &Circuit, other: usize) -> Hash {
        let (low, high) = (self.place.min(other), self.place.max(other));
        let mut hash = labelled(
            b"silograph/committee/inputs/v1",
            &self.view,
            self.number,
            &[low, high],
        );
        for (silo, owner) in circuit.owners().iter().enumerate() {
            if ![low, high].contains(&vector_component(*owner, silo)) {
                let vector = self.vectors[silo].as_ref().expect("all vectors are here");
                hash_words(&mut hash, vector);
            }
        }
        hash.finalize().into()
    }

    /// Starts the first layer: this member's components of all negated bits, and of the coin's
    /// lowest place. `outside` has the seeds of every silo outside the committee.
    pub fn begin(&mut self, circuit: &Circuit, seeds: &Seeds, outside: &[Option<&Seeds>]) {
        let vectors = std::mem::take(&mut self.vectors);
        let place = self.place;
        self.tree = vectors
            .into_par_iter()
            .enumerate()
            .map(|(silo, vector)| {
                let owner = circuit.owners()[silo];
                let travels = vector_component(owner, silo);
                let mut vector = vector;
                let component = |component: usize| {
                    if component == place {
                        return vec![];
                    }
                    if component == travels {
                        return vector.take().expect("all vectors are here");
                    }
                    if owner == Owner::Member(component) {
                        return vec![0; self.words];
                    }
                    let drawn = match owner {
                        Owner::Member(_) => seeds,
                        Owner::Outside => outside[silo].expect("its seeds are here"),
                    };
                    drawn.words(component, self.number, Purpose::Input { silo }, self.words)
                };
                negated(std::array::from_fn(component))
            })
            .collect();
        if !circuit.coin().is_empty() {
            self.coin = negated(self.random(seeds, 0));
        }
        if let Some(digits) = circuit.digits() {
            (self.tree, self.equal) = (0..digits.places())
                .map(|place| self.compared(digits, place, self.random(seeds, place)))
                .unzip();
        }
        self.convert(circuit);
    }

    /// Whether the random bits of one place are less than the digits of k, and whether equal.
    fn compared(&self, digits: &Digits, place: usize, bits: Shares) -> (Shares, Shares) {
        let (mut less, mut equal) = (bits.clone(), bits);
        let masks: Vec<u64> = digits.mask(place).collect();
        for component in others(self.place) {
            for (word, mask) in less[component].iter_mut().zip(&masks) {
                *word &= mask;
            }
        }
        // 1 ^ bit ^ digit, and digit ^ (digit & bit): constants are added to component 0.
        let constants = equal[0].iter_mut().zip(&mut less[0]);
        for ((equal, less), mask) in constants.zip(&masks) {
            *equal ^= !mask;
            *less ^= mask;
        }
        (less, equal)
    }

    // --- layers -----------------------------------------------------------------------------

    /// What this member sends to each other in the present layer.
    ///
    /// To each: the masked products of which it is the sender, then the hash of those of which it is
    /// the hasher, where there are any.
    pub fn speak(&mut self, circuit: &Circuit, seeds: &Seeds) -> Layer {
        let mut sent: Layer = std::array::from_fn(|receiver| match receiver == self.place {
            true => vec![],
            false => Vec::with_capacity(self.size(circuit, self.layer, self.place, receiver)),
        });
        let mut hashes: [Option<Sha256>; MEMBERS] = Default::default();
        if let Some(mut conversion) = self.conversion.take() {
            conversion.speak(seeds, &mut sent, |route, bytes| {
                let hash = &mut hashes[route.receiver];
                hash.get_or_insert_with(|| self.message_label(route))
                    .update(bytes);
            });
            self.conversion = Some(conversion);
        } else {
            let coin = circuit.flips(self.layer).then(|| {
                let bit = self.random(seeds, self.layer + 1);
                match circuit.coin()[self.layer + 1] {
                    true => [bit, negated(self.coin.clone())],
                    false => [negated(bit), self.coin.clone()],
                }
            });
            let mut operands = self.operands(circuit);
            operands.extend(coin.as_ref().map(|[x, y]| [x, y]));
            let outputs = circuit.gates(self.layer).zip(operands);
            self.outputs = outputs
                .map(|(gate, [x, y])| self.multiply(seeds, gate, [x, y], &mut sent, &mut hashes))
                .collect();
        }
        for (bytes, hash) in sent.iter_mut().zip(hashes) {
            if let Some(hash) = hash {
                bytes.extend(hash.finalize());
            }
        }
        sent
    }

    /// What the gates of the tree multiply in the present layer.
    fn operands(&self, circuit: &Circuit) -> Vec<[&Shares; 2]> {
        if circuit.digits().is_none() {
            let (two, _) = self.tree.as_chunks::<2>();
            return two.iter().map(|[x, y]| [x, y]).collect();
        }
        let (less, _) = self.tree.as_chunks::<2>();
        let (equal, _) = self.equal.as_chunks::<2>();
        let mut operands = vec![];
        for (number, ([low, _], [below, upper])) in less.iter().zip(equal).enumerate() {
            operands.push([upper, low]);
            if number > 0 {
                operands.push([upper, below]);
            }
        }
        operands
    }

    /// One gate: adds what this member sends to `sent`, and what it hashes to `hashes`; returns its
    /// components of the product, but for what it is yet to receive.
    fn multiply(
        &self,
        seeds: &Seeds,
        gate: usize,
        [x, y]: [&Shares; 2],
        sent: &mut Layer,
        hashes: &mut [Option<Sha256>; MEMBERS],
    ) -> Shares {
        let mut output = zeros(self.place, self.words);
        let routes: Vec<(Route, StreamKey)> = Route::all()
            .filter(|route| gate % 2 == route.parity && route.receiver != self.place)
            .map(|route| {
                let sender = route.sender;
                let purpose = Purpose::Mask { gate, sender };
                (route, seeds.key(route.receiver, self.number, purpose))
            })
            .collect();
        let mut streams: Vec<_> = routes.iter().map(|(_, key)| key.stream(0)).collect();
        // Block by block, so that everything stays in the nearest cache.
        let (mut bytes, mut words) = ([0u8; 8 * BLOCK], [0u64; BLOCK]);
        for start in (0..self.words).step_by(BLOCK) {
            let at = start..self.words.min(start + BLOCK);
            let (bytes, words) = (&mut bytes[..8 * at.len()], &mut words[..at.len()]);
            for ((route, _), stream) in routes.iter().zip(&mut streams) {
                stream.fill(bytes);
                read_words(bytes, words);
                add(&mut output[route.receiver][at.clone()], words);
                if route.other == self.place {
                    continue;
                }
                add_products(words, x, y, at.clone(), *route);
                add(&mut output[route.other][at.clone()], words);
                write_words(words, bytes);
                if route.sender == self.place {
                    sent[route.receiver].extend_from_slice(bytes);
                } else {
                    let hash = &mut hashes[route.receiver];
                    hash.get_or_insert_with(|| self.message_label(*route))
                        .update(&*bytes);
                }
            }
        }
        output
    }

    /// The size of what `sender` sends to `receiver` in a layer.
    pub fn size(&self, circuit: &Circuit, layer: usize, sender: usize, receiver: usize) -> usize {
        let hashed = Route::all().filter(|r| (r.hasher, r.receiver) == (sender, receiver));
        let hashes = hashed.map(|r| 32 * usize::from(self.sent(circuit, layer, r) > 0));
        self.sent(circuit, layer, Route::new(sender, receiver)) + hashes.sum::<usize>()
    }

    /// The size of what is sent on one route in a layer, without hashes.
    fn sent(&self, circuit: &Circuit, layer: usize, route: Route) -> usize {
        match (circuit.width(), layer.checked_sub(circuit.gate_layers())) {
            (Some(width), Some(step)) => {
                let active = Conversion::active(self.number, step, route);
                64 * self.words * width * usize::from(active)
            }
            _ => {
                let active = circuit.gates(layer).filter(|gate| gate % 2 == route.parity);
                8 * self.words * active.count()
            }
        }
    }

    /// Takes what the others sent in the present layer, compares every message with its hash, and
    /// only then uses them: the layer is done.
    pub fn hear(&mut self, circuit: &Circuit, came: [&[u8]; MEMBERS]) -> Result<(), Fault> {
        for sender in others(self.place) {
            if came[sender].len() != self.size(circuit, self.layer, sender, self.place) {
                return Err(Fault::Size);
            }
        }
        let mut used = vec![];
        for sender in others(self.place) {
            let route = Route::new(sender, self.place);
            let (message, _) = came[sender].split_at(self.sent(circuit, self.layer, route));
            if message.is_empty() {
                continue;
            }
            let (_, hash) = came[route.hasher].split_at(came[route.hasher].len() - 32);
            let mut expected = self.message_label(route);
            expected.update(message);
            if !bool::from(expected.finalize().as_slice().ct_eq(hash)) {
                return Err(Fault::Mismatch(sender, route.hasher));
            }
            used.push((route, message));
        }
        // Every message of the layer has matched its hash.
        let gates = circuit.gates(self.layer);
        for (route, message) in used {
            if let Some(conversion) = &mut self.conversion {
                conversion.hear(route, message);
                continue;
            }
            let active = gates.clone().filter(|gate| gate % 2 == route.parity);
            for (gate, bytes) in active.zip(message.chunks_exact(8 * self.words)) {
                let output = &mut self.outputs[gate - gates.start];
                add_bytes(&mut output[route.other], bytes);
            }
        }
        self.advance(circuit);
        Ok(())
    }

    /// The number of layers that are done.
    pub fn layer(&self) -> usize {
        self.layer
    }

    /// Puts the outputs of the present layer where the next one finds them.
    fn advance(&mut self, circuit: &Circuit) {
        if let Some(conversion) = &mut self.conversion {
            conversion.advance();
            self.layer += 1;
            return;
        }
        let mut outputs = std::mem::take(&mut self.outputs);
        if circuit.digits().is_some() {
            self.merge(outputs);
            self.layer += 1;
            self.convert(circuit);
            return;
        }
        if circuit.flips(self.layer) {
            let less = outputs.pop().expect("a layer with a coin has its gate");
            self.coin = match circuit.coin()[self.layer + 1] {
                true => negated(less),
                false => less,
            };
        }
        if !outputs.is_empty() {
            let odd = self.tree.len() % 2 == 1;
            let last = odd.then(|| self.tree.pop()).flatten();
            self.tree = outputs;
            self.tree.extend(last);
        }
        self.layer += 1;
        self.convert(circuit);
    }

    /// Every two neighbouring groups of places become one.
    fn merge(&mut self, outputs: Vec<Shares>) {
        let mut outputs = outputs.into_iter();
        let (less, equal) = (
            std::mem::take(&mut self.tree),
            std::mem::take(&mut self.equal),
        );
        let (mut less, mut equal) = (less.into_iter(), equal.into_iter());
        while let Some(low) = less.next() {
            let below = equal.next().expect("as many as there are groups");
            let Some(mut high) = less.next() else {
                self.tree.push(low);
                self.equal.push(below);
                break;
            };
            equal.next();
            let lower = outputs.next().expect("a gate for every two groups");
            for (sum, part) in high.iter_mut().zip(&lower) {
                add(sum, part);
            }
            // The lowest group's is never asked for.
            let first = self.equal.is_empty();
            self.equal.push(match first {
                true => below,
                false => outputs
                    .next()
                    .expect("a gate for every two groups but the lowest"),
            });
            self.tree.push(high);
        }
    }

    /// Begins the conversion, if there is one and all gates are done.
    fn convert(&mut self, circuit: &Circuit) {
        let Some(width) = circuit.width() else { return };
        if self.layer < circuit.gate_layers() {
            return;
        }
        self.equal = vec![];
        let root = self.tree.pop().expect("the tree has one root");
        let bits = match circuit.digits() {
            Some(_) => root,
            None => negated(root),
        };
        let conversion = Conversion::new(self.place, self.number, width, bits);
        self.conversion = Some(conversion);
    }

    /// What the bits were converted to, when all layers are done.
    pub fn numbers(self) -> Option<Numbers> {
        self.conversion.and_then(Conversion::numbers)
    }

    /// This member's components of a random bit that nobody knows.
    fn random(&self, seeds: &Seeds, place: usize) -> Shares {
        std::array::from_fn(|component| match component == self.place {
            true => vec![],
            false => seeds.words(component, self.number, Purpose::Coin { place }, self.words),
        })
    }

    // --- opening ----------------------------------------------------------------------------

    /// What this member tells the coordinator, when all layers are done: the sum of two components
    /// of the noisy bits, or its hash.
    pub fn open(self) -> Vec<u8> {
        let [union] = <[Shares; 1]>::try_from(self.tree).expect("the tree has one root");
        let union = negated(union);
        let mut sum = vec![0; self.words];
        for component in opening::part(self.number, self.place).0 {
            add(&mut sum, &union[component]);
            add(&mut sum, &self.coin[component]);
        }
        let sum = to_bytes(&sum);
        opening::said(opening::BITS, &self.view, self.number, self.place, sum)
    }

    fn message_label(&self, route: Route) -> Sha256 {
        let names = [self.layer, route.sender, route.hasher, route.receiver];
        let label = b"silograph/committee/joint/v1";
        labelled(label, &self.view, self.number, &names)
    }
}

/// A hash that has taken what it is about: a label, the signed view, the chunk, and numbers.
pub(super) fn labelled(label: &[u8], view: &Hash, chunk: u64, numbers: &[usize]) -> Sha256 {
    let mut hash = Sha256::new();
    hash.update((label.len() as u64).to_le_bytes());
    hash.update(label);
    hash.update(view);
    hash.update(chunk.to_le_bytes());
    for number in numbers {
        hash.update((*number as u64).to_le_bytes());
    }
    hash
}

/// The coordinator's side: the noisy bits of a chunk, from what the four members sent, after every
/// sum was compared with its hash. Bits beyond the last pair are 0.
pub fn opened(
    view: &Hash,
    chunk: u64,
    pairs: usize,
    came: [&[u8]; MEMBERS],
) -> Result<Vec<u64>, Fault> {
    let words = pairs.div_ceil(64);
    let mut sum = vec![0; words];
    for half in opening::halves(opening::BITS, view, chunk, 8 * words, came)? {
        add_bytes(&mut sum, half);
    }
    if !pairs.is_multiple_of(64) {
        sum[words - 1] &= (1 << (pairs % 64)) - 1;
    }
    Ok(sum)
}

/// A member's components of so many zeros.
pub(super) fn zeros(place: usize, count: usize) -> Shares {
    std::array::from_fn(|component| vec![0; if component == place { 0 } else { count }])
}

/// Adds the part of x·y that the sender and the hasher of a route know: the products across the two
/// other components, and that of one component with itself, where this route has it.
fn add_products(sum: &mut [u64], x: &Shares, y: &Shares, at: Range<usize>, route: Route) {
    let (a, b) = (route.receiver, route.other);
    let [xa, xb] = [a, b].map(|component| &x[component][at.clone()]);
    let [ya, yb] = [a, b].map(|component| &y[component][at.clone()]);
    let values = xa.iter().zip(xb).zip(ya.iter().zip(yb));
    // Component c is multiplied with itself once, by those who know c and the component after it.
    let own = |c: usize, next: usize| next == (c + 1) % MEMBERS;
    let [first, second] = [own(a, b), own(b, a)].map(|own| if own { u64::MAX } else { 0 });
    for (sum, ((xa, xb), (ya, yb))) in sum.iter_mut().zip(values) {
        *sum ^= (xa & (yb ^ (ya & first))) ^ (xb & (ya ^ (yb & second)));
    }
}

/// The negated bit: its component 0 is flipped, by the three members that hold it.
fn negated(mut shares: Shares) -> Shares {
    for word in &mut shares[0] {
        *word = !*word;
    }
    shares
}

fn add(sum: &mut [u64], words: &[u64]) {
    for (sum, word) in sum.iter_mut().zip(words) {
        *sum ^= word;
    }
}

fn add_bytes(sum: &mut [u64], bytes: &[u8]) {
    let (eights, _) = bytes.as_chunks::<8>();
    for (sum, eight) in sum.iter_mut().zip(eights) {
        *sum ^= u64::from_le_bytes(*eight);
    }
}

fn read_words(bytes: &[u8], words: &mut [u64]) {
    let (eights, _) = bytes.as_chunks::<8>();
    for (word, eight) in words.iter_mut().zip(eights) {
        *word = u64::from_le_bytes(*eight);
    }
}

fn write_words(words: &[u64], bytes: &mut [u8]) {
    let (eights, _) = bytes.as_chunks_mut::<8>();
    for (eight, word) in eights.iter_mut().zip(words) {
        *eight = word.to_le_bytes();
    }
}

fn to_bytes(words: &[u64]) -> Vec<u8> {
    let mut bytes = vec![0; 8 * words.len()];
    write_words(words, &mut bytes);
    bytes
}

fn hash_words(hash: &mut Sha256, words: &[u64]) {
    let mut bytes = [0u8; 8 * BLOCK];
    for part in words.chunks(BLOCK) {
        let bytes = &mut bytes[..8 * part.len()];
        write_words(part, bytes);
        hash.update(&*bytes);
    }
}
