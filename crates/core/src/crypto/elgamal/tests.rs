//! Round trips, refusals and distributions of the whole module.

use curve25519_dalek::constants::{RISTRETTO_BASEPOINT_POINT, RISTRETTO_BASEPOINT_TABLE};
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::Identity;
use proptest::prelude::*;
use sha2::{Digest, Sha512};

use super::*;
use crate::dp::bernoulli::Probability;

const MULTIPLES: [&str; 16] = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76",
    "6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919",
    "94741f5d5d52755ece4f23f044ee27d5d1ea1e2bd196b462166b16152a9d0259",
    "da80862773358b466ffadfe0b3293ab3d9fd53c5ea6c955358f568322daf6a57",
    "e882b131016b52c1d3337080187cf768423efccbb517bb495ab812c4160ff44e",
    "f64746d3c92b13050ed8d80236a7f0007c3b3f962f5ba793d19a601ebb1df403",
    "44f53520926ec81fbd5a387845beb7df85a96a24ece18738bdcfa6a7822a176d",
    "903293d8f2287ebe10e2374dc1a53e0bc887e592699f02d077d5263cdd55601c",
    "02622ace8f7303a31cafc63f8fc48fdc16e1c8c8d234b2f0d6685282a9076031",
    "20706fd788b2720a1ed2a5dad4952b01f413bcf0e7564de8cdc816689e2db95f",
    "bce83f8ba5dd2fa572864c24ba1810f9522bc6004afe95877ac73241cafdab42",
    "e4549ee16b9aa03099ca208c67adafcafa4c3f3e4e5303de6026e3ca8ff84460",
    "aa52e000df2e16f55fb1032fc33bc42742dad6bd5a8fc0be0167436c5948501f",
    "46376b80f409b29dc2b5f6f0c52591990896e5716f41477cd30085ab7f10301e",
    "e0c418f7c8d9c4cdd7395b93ea124f3ad99021bb681dfc3302a9d99a2e53e64e",
];

fn hex(text: &str) -> [u8; 32] {
    let byte = |i: usize| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap();
    std::array::from_fn(byte)
}

fn run() -> Run {
    Run {
        id: b"run 1".to_vec(),
        roster: b"roster".to_vec(),
    }
}

fn seed(purpose: u8, silo: usize) -> Seed {
    let mut seed = [purpose; 32];
    seed[0] = silo as u8;
    seed
}

/// m silos that have agreed on a key.
pub(super) fn party(m: usize) -> (JointKey, Vec<SecretKey>) {
    let secrets: Vec<SecretKey> = (0..m).map(|i| SecretKey::from_seed(&seed(1, i))).collect();
    (agree(&run(), &secrets).unwrap(), secrets)
}

fn agree(run: &Run, secrets: &[SecretKey]) -> Result<JointKey, Error> {
    let sent: Vec<_> = secrets
        .iter()
        .enumerate()
        .map(|(i, secret)| {
            let identity = [b's', i as u8];
            let proof = secret.prove(run, &identity, &seed(2, i));
            (identity, secret.public_key().to_bytes(), proof)
        })
        .collect();
    let members: Vec<Member<'_>> = sent
        .iter()
        .map(|(identity, key, proof)| Member {
            identity,
            key,
            proof,
        })
        .collect();
    JointKey::agree(run, &members)
}

fn sure() -> Probability {
    Probability::ratio(0, 1).unwrap()
}

/// All shares of a chunk.
fn shares(key: &JointKey, secrets: &[SecretKey], cells: &[u8], place: Place) -> Vec<Vec<u8>> {
    secrets
        .iter()
        .enumerate()
        .map(|(i, secret)| share(key, secret, i, cells, place, &seed(3, i)).unwrap())
        .collect()
}

fn open(key: &JointKey, cells: &[u8], sent: &[Vec<u8>], place: Place) -> Result<Vec<u8>, Error> {
    let sent: Vec<&[u8]> = sent.iter().map(Vec::as_slice).collect();
    combine(key, &Decoder::new(place.hops), cells, &sent, place.chunk)
}

/// A whole run of one chunk in one process; every point changes at every hop.
fn collect(
    bits: &[Vec<u8>],
    count: usize,
    variant: &Variant,
    flips: Option<&Probability>,
) -> Vec<u8> {
    let (key, secrets) = party(bits.len());
    let mut cells = first_hop(&key, &bits[0], count, variant, 9, &seed(4, 0)).unwrap();
    let mut place = Place { chunk: 9, hops: 1 };
    let mut step = |make: &dyn Fn(&[u8], Place) -> Vec<u8>| {
        let next = make(&cells, place);
        let (old, new) = (cells.as_chunks::<32>().0, next.as_chunks::<32>().0);
        assert!(old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old != new));
        place.hops += 1;
        cells = next;
    };
    for (i, bits) in bits.iter().enumerate().skip(1) {
        step(&|cells, place| hop(&key, cells, bits, variant, place, &seed(4, i)).unwrap());
    }
    if let Some(b) = flips {
        for i in 0..bits.len() {
            step(&|cells, place| flip_hop(&key, cells, b, place, &seed(5, i)).unwrap());
        }
    }
    open(&key, &cells, &shares(&key, &secrets, &cells, place), place).unwrap()
}

#[test]
fn multiples_of_the_generator_are_those_of_rfc_9496() {
    let mut point = RistrettoPoint::identity();
    for (i, expected) in MULTIPLES.iter().enumerate() {
        assert_eq!(point.compress().to_bytes(), hex(expected));
        let by_table = RISTRETTO_BASEPOINT_TABLE * &Scalar::from(i as u64);
        assert_eq!(by_table.compress().to_bytes(), hex(expected));
        match decode_vartime(&hex(expected), "cell", None, i) {
            Ok(decoded) => assert_eq!(decoded, point),
            Err(error) => assert_eq!((i, error.code()), (0, "encoding")),
        }
        point += RISTRETTO_BASEPOINT_POINT;
    }
}

#[test]
fn without_noise_every_variant_opens_the_union() {
    let count = 37;
    for m in 1..=5 {
        let bits: Vec<Vec<u8>> = (0..m)
            .map(|i| {
                (0..5)
                    .map(|j| [0b1010_0001, 0b0011_0000, 0b0000_0110][(i + j) % 3])
                    .collect()
            })
            .collect();
        let mut union: Vec<u8> = (0..5)
            .map(|j| bits.iter().fold(0, |all, b| all | b[j]))
            .collect();
        union[4] &= 0b1_1111;
        let printed = collect(&bits, count, &Variant::Printed(sure()), None);
        let replace = collect(&bits, count, &Variant::Replace(sure()), None);
        let blinded = collect(&bits, count, &Variant::Blinded, Some(&sure()));
        assert_eq!([&printed, &replace, &blinded], [&union; 3], "m = {m}");
        let turned = collect(
            &bits,
            count,
            &Variant::Blinded,
            Probability::ratio(1, 1).as_ref(),
        );
        let even: Vec<u8> = union
            .iter()
            .map(|x| if m % 2 == 0 { *x } else { !x })
            .collect();
        assert_eq!(turned[..4], even[..4], "m = {m}");
        assert_eq!(turned[4], even[4] & 0b1_1111, "m = {m}");
    }
}

#[test]
fn every_pattern_of_a_small_chunk_is_overwritten_and_flipped() {
    let (key, secrets) = party(2);
    let decoder = Decoder::new(3);
    for pattern in 0..=255u8 {
        let old = encrypt(&key, &[pattern], 8, 0, &seed(6, 0)).unwrap();
        let (mask, values, coins) = (0b1111_0000, 0b1100_1100, 0b1010_1010);
        let place = Place { chunk: 0, hops: 1 };
        let new = overwrite(&key, &old, &[mask], &[values], place, &seed(7, 0)).unwrap();
        let place = Place { chunk: 0, hops: 2 };
        let last = flip(&key, &new, &[coins], place, &seed(8, 0)).unwrap();
        let place = Place { chunk: 0, hops: 3 };
        let sent = shares(&key, &secrets, &last, place);
        let found = combine(&key, &decoder, &last, &[&sent[0], &sent[1]], 0).unwrap();
        assert_eq!(found, [((pattern & !mask) | (values & mask)) ^ coins]);
    }
}

#[test]
fn a_step_is_deterministic_in_its_seed_and_changes_with_anything_else() {
    let (key, _) = party(2);
    let place = Place { chunk: 3, hops: 1 };
    let cells = encrypt(&key, &[0b101], 3, 3, &[1; 32]).unwrap();
    let base = overwrite(&key, &cells, &[1], &[0], place, &[1; 32]).unwrap();
    assert_eq!(
        base,
        overwrite(&key, &cells, &[1], &[0], place, &[1; 32]).unwrap()
    );
    let later = Place { chunk: 4, ..place };
    let further = Place { hops: 2, ..place };
    let other = encrypt(&key, &[0b101], 3, 3, &[2; 32]).unwrap();
    for (what, changed) in [
        ("seed", overwrite(&key, &cells, &[1], &[0], place, &[2; 32])),
        (
            "chunk",
            overwrite(&key, &cells, &[1], &[0], later, &[1; 32]),
        ),
        (
            "hops",
            overwrite(&key, &cells, &[1], &[0], further, &[1; 32]),
        ),
        ("mask", overwrite(&key, &cells, &[2], &[0], place, &[1; 32])),
        (
            "values",
            overwrite(&key, &cells, &[1], &[1], place, &[1; 32]),
        ),
        (
            "cells",
            overwrite(&key, &other, &[1], &[0], place, &[1; 32]),
        ),
        ("step", flip(&key, &cells, &[1], place, &[1; 32])),
    ] {
        let changed = changed.unwrap();
        let (old, new) = (base.as_chunks::<32>().0, changed.as_chunks::<32>().0);
        assert!(old.iter().zip(new).all(|(old, new)| old != new), "{what}");
    }
}

/// No two cells, blocks or halves share a randomiser.
#[test]
fn no_randomiser_is_used_twice() {
    let (key, _) = party(1);
    let count = 3 * cells::BLOCK + 7;
    let cells = encrypt(&key, &vec![0; count.div_ceil(8)], count, 0, &[1; 32]).unwrap();
    let mut points: Vec<_> = cells.as_chunks::<32>().0.to_vec();
    points.sort_unstable();
    points.dedup();
    assert_eq!(points.len(), 2 * count);
}

#[test]
fn a_batch_encodes_the_double_of_what_one_by_one_encoding_gives() {
    let (key, secrets) = party(1);
    let cells = encrypt(&key, &[0b10], 2, 0, &[1; 32]).unwrap();
    for (i, cell) in cells.as_chunks::<64>().0.iter().enumerate() {
        let point = |k: usize| CompressedRistretto(cell.as_chunks::<32>().0[k]).decompress();
        let plain = point(1).unwrap() - point(0).unwrap() * secrets[0].scalar();
        let unit = RISTRETTO_BASEPOINT_POINT * Scalar::from(2u64);
        assert_eq!(plain, unit * Scalar::from(i as u64));
    }
}

#[test]
fn keys_that_repeat_cancel_or_prove_nothing_are_refused() {
    let own = |i| SecretKey::from_seed(&seed(1, i));
    let refused = |secrets: Vec<SecretKey>| agree(&run(), &secrets).unwrap_err();
    let (silo, first) = (2, 0);
    assert_eq!(
        refused(vec![own(0), own(1), own(0)]),
        Error::RepeatedKey { silo, first }
    );
    assert_eq!(refused(vec![own(0), own(0).negated()]), Error::IdentitySum);
    assert_eq!(refused(vec![]), Error::NoSilo);
    // Key of silo 1 chosen to cancel that of silo 0: its secret is not known, so no proof holds.
    let rogue = (own(5).public_key().point() - own(0).public_key().point()).compress();
    let good = own(0).prove(&run(), b"a", &seed(2, 0));
    let bad = own(5).prove(&run(), b"b", &seed(2, 1));
    let key = own(0).public_key().to_bytes();
    let members = [
        Member {
            identity: b"a",
            key: &key,
            proof: &good,
        },
        Member {
            identity: b"b",
            key: rogue.as_bytes(),
            proof: &bad,
        },
    ];
    let error = JointKey::agree(&run(), &members).unwrap_err();
    assert_eq!((error.code(), error.silo()), ("proof", Some(1)));
}

/// Were the key not in the challenge, a key could be made to fit a proof, and its secret be
/// unknown: such a key could be chosen to cancel those of others.
#[test]
fn a_key_that_is_fitted_to_a_proof_is_refused() {
    let (z, r) = (
        Scalar::from(77u64),
        RistrettoPoint::from_uniform_bytes(&[5; 64]),
    );
    let commitment = r.compress().to_bytes();
    let c = proofs::possession_challenge(&run(), b"a", &[0; 32], &commitment);
    let fitted = ((RISTRETTO_BASEPOINT_TABLE * &z - r) * c.invert()).compress();
    let member = Member {
        identity: b"a",
        key: fitted.as_bytes(),
        proof: &[commitment, z.to_bytes()].concat(),
    };
    let error = JointKey::agree(&run(), &[member]).unwrap_err();
    assert_eq!((error.code(), error.silo()), ("proof", Some(0)));
}

/// Five groups of cells, their packed points, and the right shares of silo 1.
struct Batch {
    key: JointKey,
    secrets: Vec<SecretKey>,
    cells: Vec<u8>,
    packed: Vec<RistrettoPoint>,
    right: Vec<RistrettoPoint>,
}

const AT: Place = Place { chunk: 0, hops: 1 };

impl Batch {
    fn new() -> Self {
        let (key, secrets) = party(2);
        let cells = encrypt(&key, &[0; 10], 5 * PACKED, 0, &[1; 32]).unwrap();
        let packed: Vec<RistrettoPoint> = cells
            .chunks(PACKED * CELL_BYTES)
            .map(|group| decrypt::pack_vartime(group, 0).unwrap())
            .collect();
        let right = packed.iter().map(|p| p * secrets[1].scalar()).collect();
        Self {
            key,
            secrets,
            cells,
            packed,
            right,
        }
    }

    fn statement(&self, points: &[RistrettoPoint]) -> [u8; 64] {
        let digest = decrypt::digest_cells(&self.cells);
        decrypt::statement(&self.key, 1, &digest, &encode(points), AT)
    }

    /// What becomes of a chunk in which silo 1 sends these shares with this proof.
    fn open(&self, points: &[RistrettoPoint], proof: [u8; PROOF_BYTES]) -> Result<Vec<u8>, Error> {
        let mut sent = shares(&self.key, &self.secrets, &self.cells, AT);
        sent[1] = encode(points);
        sent[1].extend(proof);
        open(&self.key, &self.cells, &sent, AT)
    }

    /// A proof that a malicious silo makes as if its shares were right.
    fn prove(&self, points: &[RistrettoPoint]) -> [u8; PROOF_BYTES] {
        let statement = self.statement(points);
        proofs::prove_shares(&self.secrets[1], &statement, &self.packed, &[1; 32])
    }
}

fn encode(points: &[RistrettoPoint]) -> Vec<u8> {
    points
        .iter()
        .flat_map(|point| point.compress().to_bytes())
        .collect()
}

const WRONG: Error = Error::Proof {
    what: "decryption shares",
    silo: 1,
};

#[test]
fn one_wrong_share_in_a_batch_is_found_wherever_it_is() {
    let batch = Batch::new();
    let right = &batch.right;
    assert_eq!(batch.open(right, batch.prove(right)), Ok(vec![0; 10]));
    for place in 0..5 {
        let mut points = right.clone();
        points[place] += RISTRETTO_BASEPOINT_POINT;
        assert_eq!(batch.open(&points, batch.prove(&points)), Err(WRONG));
        // Errors that cancel in a plain sum.
        points[(place + 1) % 5] -= RISTRETTO_BASEPOINT_POINT;
        assert_eq!(batch.open(&points, batch.prove(&points)), Err(WRONG));
    }
}

/// A silo that knew the coefficients before it chose its shares could make errors cancel.
#[test]
fn errors_that_fit_the_coefficients_of_other_shares_are_found() {
    let batch = Batch::new();
    let weights = proofs::coefficients(&batch.statement(&batch.right), 5);
    let mut points = batch.right.clone();
    points[1] += RISTRETTO_BASEPOINT_POINT * weights[3];
    points[3] -= RISTRETTO_BASEPOINT_POINT * weights[1];
    assert_eq!(batch.open(&points, batch.prove(&batch.right)), Err(WRONG));
    assert_eq!(batch.open(&points, batch.prove(&points)), Err(WRONG));
}

/// Right shares for another key: every share has one discrete logarithm, but not that of the key.
#[test]
fn shares_of_another_key_are_found() {
    let batch = Batch::new();
    let stranger = SecretKey::from_seed(&seed(9, 9));
    let points: Vec<_> = batch.packed.iter().map(|p| p * stranger.scalar()).collect();
    let statement = batch.statement(&points);
    let proof = proofs::prove_shares(&stranger, &statement, &batch.packed, &[1; 32]);
    assert_eq!(batch.open(&points, proof), Err(WRONG));
}

#[test]
fn a_plaintext_that_is_no_bit_is_refused_by_its_group() {
    let (key, secrets) = party(2);
    let bits = [0xff; 5];
    let mut cells = encrypt(&key, &bits, 40, 0, &[1; 32]).unwrap();
    // Cell 37 := cell 37 + cell 38, an encryption of 2: the last group of 8 holds 2^5 too much.
    let (points, _) = cells.as_chunks_mut::<32>();
    for half in 0..2 {
        let point = |i: usize| {
            CompressedRistretto(points[2 * i + half])
                .decompress()
                .unwrap()
        };
        points[2 * 37 + half] = (point(37) + point(38)).compress().to_bytes();
    }
    let place = Place { chunk: 0, hops: 1 };
    let sent = shares(&key, &secrets, &cells, place);
    assert_eq!(
        open(&key, &cells, &sent, place),
        Err(Error::Plaintext { cell: 32 })
    );
    // Cells of another number of hops have another unit.
    let place = Place { chunk: 0, hops: 7 };
    let cells = encrypt(&key, &bits, 40, 0, &[1; 32]).unwrap();
    let sent = shares(&key, &secrets, &cells, place);
    assert_eq!(
        open(&key, &cells, &sent, place),
        Err(Error::Plaintext { cell: 0 })
    );
}

#[test]
fn secrets_are_not_shown() {
    let (key, secrets) = party(1);
    assert_eq!(format!("{:?}", secrets[0]), "SecretKey(…)");
    assert_eq!(format!("{key:?}"), "JointKey(silos=1)");
}

/// The wire format, frozen: these bytes change only with the version in every domain string.
#[test]
fn fixed_seeds_give_fixed_bytes() {
    let (key, secrets) = party(3);
    let p = Probability::ratio(1, 5).unwrap();
    let bits: Vec<u8> = (0..25u8).map(|i| i.wrapping_mul(37)).collect();
    let mut all = Sha512::new();
    let mut cells = first_hop(&key, &bits, 200, &Variant::Replace(p.clone()), 1, &[1; 32]).unwrap();
    all.update(&cells);
    for (hops, variant) in [
        (1, Variant::Printed(p.clone())),
        (2, Variant::Replace(p.clone())),
        (3, Variant::Blinded),
    ] {
        cells = hop(
            &key,
            &cells,
            &bits,
            &variant,
            Place { chunk: 1, hops },
            &[2; 32],
        )
        .unwrap();
        all.update(&cells);
    }
    cells = flip_hop(&key, &cells, &p, Place { chunk: 1, hops: 4 }, &[3; 32]).unwrap();
    all.update(&cells);
    let place = Place { chunk: 1, hops: 5 };
    let sent = shares(&key, &secrets, &cells, place);
    sent.iter().for_each(|message| all.update(message));
    all.update(open(&key, &cells, &sent, place).unwrap());
    let digest: String = all.finalize()[..16]
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert_eq!(digest, "9446d451a7ad77da91b421ded5d3b00e");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn decoders_refuse_or_accept_but_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        silo in 0usize..4,
        hops: u16,
    ) {
        let (key, secrets) = party(2);
        let place = Place { chunk: 0, hops: hops % 50 };
        let _ = PublicKey::decode(&bytes, silo);
        let _ = hop(&key, &bytes, &bytes, &Variant::Blinded, place, &[0; 32]);
        let _ = flip_hop(&key, &bytes, &sure(), place, &[0; 32]);
        let _ = share(&key, &secrets[0], silo, &bytes, place, &[0; 32]);
        let member = Member { identity: &bytes, key: &bytes, proof: &bytes };
        prop_assert!(JointKey::agree(&run(), &[member]).is_err());
        let cells = encrypt(&key, &[1], 1, 0, &[0; 32]).unwrap();
        let decoder = TABLE.get_or_init(|| Decoder::new(1));
        prop_assert!(combine(&key, decoder, &cells, &[&bytes, &bytes], 0).is_err());
    }
}

static TABLE: std::sync::OnceLock<Decoder> = std::sync::OnceLock::new();
