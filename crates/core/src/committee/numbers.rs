//! Numbers mod 2^w that the members share, and how bits become such numbers.
//!
//! Only the low w bits of a word mean anything, w = 8·width. They alone travel: what is above them
//! differs from member to member, and would tell a receiver about carries.

use subtle::ConstantTimeEq;

use super::chunk::{BLOCK, Fault, Hash, Layer, Shares, zeros};
use super::circuit::Digits;
use super::seeds::{Purpose, Seeds};
use super::{MEMBERS, Route, opening, others};
use crate::crypto::keystream::Keystream;

/// The bits that travel.
pub(super) fn low(width: usize) -> u64 {
    u64::MAX >> (64 - 8 * width)
}

/// Does something with `W`, a width that the compiler knows: several times as fast as one that it
/// does not.
macro_rules! with_width {
    ($width:expr, $body:expr) => {
        with_width!(@ $width, $body, 1 2 3 4 5 6 7 8)
    };
    (@ $width:expr, $body:expr, $($known:literal)*) => {
        match $width {
            $($known => {
                const W: usize = $known;
                $body
            })*
            _ => unreachable!("a number has 1 to 8 bytes"),
        }
    };
}

/// Writes the low `width` bytes of every word, one after the other.
pub(super) fn pack(words: &[u64], width: usize) -> Vec<u8> {
    let mut bytes = vec![0; words.len() * width];
    with_width!(width, write::<W>(words, &mut bytes));
    bytes
}

/// The words that [`pack`] wrote.
pub(super) fn unpack(bytes: &[u8], width: usize) -> Vec<u64> {
    let mut words = vec![0; bytes.len() / width];
    with_width!(width, read::<W>(bytes, &mut words));
    words
}

fn read<const W: usize>(bytes: &[u8], words: &mut [u64]) {
    let (parts, _) = bytes.as_chunks::<W>();
    for (word, part) in words.iter_mut().zip(parts) {
        let mut whole = [0; 8];
        whole[..W].copy_from_slice(part);
        *word = u64::from_le_bytes(whole);
    }
}

fn write<const W: usize>(words: &[u64], bytes: &mut [u8]) {
    let (parts, _) = bytes.as_chunks_mut::<W>();
    for (part, word) in parts.iter_mut().zip(words) {
        part.copy_from_slice(&word.to_le_bytes()[..W]);
    }
}

/// One chunk's bits on their way to numbers.
///
/// A bit is x = f ^ s, where f = x₀ ^ x₁ is known to members 2 and 3, and s = x₂ ^ x₃ to the members
/// 0 and 1. So f and s are shared as numbers by one joint message each, and are 0 or 1 whatever a cheat
/// does. Then x = f + s − 2·f·s, and since f has the components 0 and 1 only, and s the components 2
/// and 3, the product takes four more messages. Of the twelve directions between members a chunk with
/// an even number uses six, and one with an odd number the others.
pub struct Conversion {
    place: usize,
    number: u64,
    width: usize,
    step: usize,
    bits: Shares,
    /// The components of f, then those of s.
    factors: Shares,
    numbers: Shares,
}

impl Conversion {
    pub(super) fn new(place: usize, number: u64, width: usize, bits: Shares) -> Self {
        let count = 64 * bits[(place + 1) % MEMBERS].len();
        Self {
            place,
            number,
            width,
            step: 0,
            bits,
            factors: zeros(place, count),
            numbers: Shares::default(),
        }
    }

    /// Whether something is sent on a route in one of the two steps.
    pub fn active(number: u64, step: usize, route: Route) -> bool {
        let together = route.receiver / 2 == route.other / 2;
        route.parity as u64 == number % 2 && together == (step == 0)
    }

    /// Adds what this member sends to `sent`, and hashes what another sends on a route.
    pub(super) fn speak(
        &mut self,
        seeds: &Seeds,
        sent: &mut Layer,
        mut hash: impl FnMut(Route, &[u8]),
    ) {
        for route in Route::all() {
            if !Self::active(self.number, self.step, route) || route.receiver == self.place {
                continue;
            }
            let purpose = Purpose::Number {
                sender: route.sender,
            };
            let key = seeds.key(route.receiver, self.number, purpose);
            let sends = (route.sender == self.place).then_some(&mut sent[route.receiver]);
            let mut said = |bytes: &[u8]| hash(route, bytes);
            let stream = key.stream(0);
            with_width!(
                self.width,
                self.speak_on::<W>(route, stream, sends, &mut said)
            );
        }
    }

    /// One route, block by block, so that everything stays in the nearest cache.
    fn speak_on<const W: usize>(
        &mut self,
        route: Route,
        mut stream: Keystream<'_>,
        mut sends: Option<&mut Vec<u8>>,
        hash: &mut impl FnMut(&[u8]),
    ) {
        let count = 64 * self.bits[(self.place + 1) % MEMBERS].len();
        let (mut bytes, mut words) = ([0u8; 8 * BLOCK], [0u64; BLOCK]);
        for start in (0..count).step_by(BLOCK) {
            let size = BLOCK.min(count - start);
            let (bytes, words) = (&mut bytes[..W * size], &mut words[..size]);
            stream.fill(bytes);
            read::<W>(bytes, words);
            self.add(route.receiver, start, words);
            if route.other == self.place {
                continue;
            }
            self.hide(route, start, words);
            self.add(route.other, start, words);
            write::<W>(words, bytes);
            match &mut sends {
                Some(sent) => sent.extend_from_slice(bytes),
                None => hash(bytes),
            }
        }
    }

    /// From masks, what the sender and the hasher of a route know minus these masks.
    fn hide(&self, route: Route, start: usize, masks: &mut [u64]) {
        let [a, b] = [route.receiver, route.other];
        if self.step == 0 {
            let bits = self.bits[a][start / 64..]
                .iter()
                .zip(&self.bits[b][start / 64..]);
            for (masks, (a, b)) in masks.chunks_mut(64).zip(bits) {
                for (place, mask) in masks.iter_mut().enumerate() {
                    *mask = ((a ^ b) >> place & 1).wrapping_sub(*mask);
                }
            }
        } else {
            let factors = self.factors[a][start..]
                .iter()
                .zip(&self.factors[b][start..]);
            for (mask, (a, b)) in masks.iter_mut().zip(factors) {
                *mask = a.wrapping_mul(*b).wrapping_sub(*mask);
            }
        }
    }

    /// Adds to a component: of f or s, or −2 times to that of x.
    fn add(&mut self, component: usize, start: usize, words: &[u64]) {
        let (sums, times) = match self.step {
            0 => (&mut self.factors, 1),
            _ => (&mut self.numbers, 2u64.wrapping_neg()),
        };
        for (sum, word) in sums[component][start..].iter_mut().zip(words) {
            *sum = sum.wrapping_add(word.wrapping_mul(times));
        }
    }

    /// Uses a message that has matched its hash.
    pub(super) fn hear(&mut self, route: Route, message: &[u8]) {
        with_width!(self.width, self.hear_on::<W>(route.other, message));
    }

    fn hear_on<const W: usize>(&mut self, component: usize, message: &[u8]) {
        let mut words = [0u64; BLOCK];
        for (number, part) in message.chunks(W * BLOCK).enumerate() {
            let words = &mut words[..part.len() / W];
            read::<W>(part, words);
            self.add(component, number * BLOCK, words);
        }
    }

    /// The step is done.
    pub(super) fn advance(&mut self) {
        if self.step == 0 {
            self.numbers = self.factors.clone();
        } else {
            self.factors = Shares::default();
            self.bits = Shares::default();
        }
        self.step += 1;
    }

    /// The numbers, when both steps are done.
    pub(super) fn numbers(self) -> Option<Numbers> {
        let done = self.step == 2;
        done.then(|| Numbers::new(self.place, self.width, self.numbers))
    }
}

/// A member's components of numbers mod 2^w.
pub struct Numbers {
    pub(super) place: usize,
    pub(super) width: usize,
    pub(super) components: Shares,
}

impl Numbers {
    pub(super) fn new(place: usize, width: usize, components: Shares) -> Self {
        Self {
            place,
            width,
            components,
        }
    }

    /// So many zeros.
    pub fn zeros(place: usize, width: usize, count: usize) -> Self {
        Self::new(place, width, zeros(place, count))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.components[(self.place + 1) % MEMBERS].len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// G − G′ from their digits.
    pub fn of_digits(&self, digits: &Digits) -> Self {
        let mut sums = Self::zeros(self.place, self.width, digits.count());
        for component in others(self.place) {
            let all = self.components[component].chunks(64 * digits.digit_words());
            for (number, words) in all.enumerate() {
                let (minus, digit) = (number / digits.digits(), number % digits.digits());
                let weight = if minus == 0 {
                    1u64
                } else {
                    1u64.wrapping_neg()
                } << digit;
                for (sum, word) in sums.components[component].iter_mut().zip(words) {
                    *sum = sum.wrapping_add(word.wrapping_mul(weight));
                }
            }
        }
        sums
    }

    /// Adds other numbers, from number `start` on.
    pub fn add(&mut self, start: usize, others: &Shares) {
        for (sums, words) in self.components.iter_mut().zip(others) {
            for (sum, word) in sums.iter_mut().skip(start).zip(words) {
                *sum = sum.wrapping_add(*word);
            }
        }
    }

    /// The same with numbers of the same member. `None` if they are too many.
    pub fn join(&mut self, start: usize, other: &Self) -> Option<()> {
        let fits = start.checked_add(other.len())? <= self.len() && other.place == self.place;
        fits.then(|| self.add(start, &other.components))
    }

    // --- openings ---------------------------------------------------------------------------

    /// What this member tells the coordinator: the sum of two components, or its hash. In the next
    /// phase the two that know a sum change places.
    pub fn open(&self, view: &Hash, phase: u64) -> Vec<u8> {
        let half = opening::part(phase, self.place).0;
        let [a, b] = half.map(|component| &self.components[component]);
        let sums: Vec<u64> = a.iter().zip(b).map(|(a, b)| a.wrapping_add(*b)).collect();
        let sums = pack(&sums, self.width);
        opening::said(opening::NUMBERS, view, phase, self.place, sums)
    }

    /// What this member tells another: the component that it lacks, or its hash; or nothing.
    pub fn tell(&self, view: &Hash, phase: u64, receiver: usize) -> Option<Vec<u8>> {
        let bytes = || pack(&self.components[receiver], self.width);
        match (self.place + MEMBERS - receiver) % MEMBERS {
            1 => Some(bytes()),
            2 => Some(opening::digest(opening::TELL, view, phase, &[receiver], &bytes()).to_vec()),
            _ => None,
        }
    }

    /// The numbers themselves, from the component that this member lacks and its hash, once the two
    /// match.
    pub fn learn(
        &self,
        view: &Hash,
        phase: u64,
        bytes: &[u8],
        hash: &[u8],
    ) -> Result<Vec<i64>, Fault> {
        let [sender, hasher] = [1, 2].map(|step| (self.place + step) % MEMBERS);
        if bytes.len() != self.len() * self.width || hash.len() != 32 {
            return Err(Fault::Size);
        }
        let expected = opening::digest(opening::TELL, view, phase, &[self.place], bytes);
        if !bool::from(expected.ct_eq(hash)) {
            return Err(Fault::Mismatch(sender, hasher));
        }
        let mut sums = unpack(bytes, self.width);
        for component in others(self.place) {
            for (sum, word) in sums.iter_mut().zip(&self.components[component]) {
                *sum = sum.wrapping_add(*word);
            }
        }
        Ok(centred(&sums, self.width))
    }
}

/// The coordinator's side of [`Numbers::open`]: the numbers, after every sum was compared with its
/// hash.
pub fn opened_numbers(
    view: &Hash,
    phase: u64,
    count: usize,
    width: usize,
    came: [&[u8]; MEMBERS],
) -> Result<Vec<i64>, Fault> {
    let mut sums = vec![0u64; count];
    for half in opening::halves(opening::NUMBERS, view, phase, count * width, came)? {
        for (sum, word) in sums.iter_mut().zip(unpack(half, width)) {
            *sum = sum.wrapping_add(word);
        }
    }
    Ok(centred(&sums, width))
}

/// Numbers from −2^(w−1) on.
pub fn centred(words: &[u64], width: usize) -> Vec<i64> {
    let shift = 64 - 8 * width;
    let centre = |word: &u64| (word << shift).cast_signed() >> shift;
    words.iter().map(centre).collect()
}
