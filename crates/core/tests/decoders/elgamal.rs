//! Keys, proofs, cells and decryption shares of threshold ElGamal.

use std::sync::LazyLock;

use proptest::prelude::*;
use silograph_core::crypto::elgamal::{
    self, CELL_BYTES, Decoder, Error, JointKey, Member, Place, PublicKey, Run, SecretKey, Variant,
};
use silograph_core::dp::bernoulli::Probability;

use super::{HUGE, bytes, cases, changed, changes};

const COUNT: usize = 21;
const PLACE: Place = Place { chunk: 3, hops: 1 };

/// A valid run of two silos: what each of them sent, and the table that opens it.
struct Sent {
    run: Run,
    secrets: [SecretKey; 2],
    keys: [[u8; 32]; 2],
    proofs: [[u8; 64]; 2],
    joint: JointKey,
    cells: Vec<u8>,
    shares: [Vec<u8>; 2],
    decoder: Decoder,
    bits: Vec<u8>,
}

impl Sent {
    fn members<'a>(&'a self, key: &'a [u8], proof: &'a [u8]) -> [Member<'a>; 2] {
        let honest = Member {
            identity: b"0",
            key: &self.keys[0],
            proof: &self.proofs[0],
        };
        let other = Member {
            identity: b"1",
            key,
            proof,
        };
        [honest, other]
    }
}

static SENT: LazyLock<Sent> = LazyLock::new(|| {
    let run = Run {
        id: b"run".to_vec(),
        roster: b"roster".to_vec(),
    };
    let secrets = [1, 2].map(|seed| SecretKey::from_seed(&[seed; 32]));
    let keys = secrets.each_ref().map(|key| key.public_key().to_bytes());
    let proof = |i: usize| secrets[i].prove(&run, i.to_string().as_bytes(), &[7; 32]);
    let proofs = [proof(0), proof(1)];
    let member = |i: usize, identity| Member {
        identity,
        key: &keys[i],
        proof: &proofs[i],
    };
    let joint = JointKey::agree(&run, &[member(0, b"0"), member(1, b"1")]).unwrap();
    let bits = vec![0xa5, 0x3c, 0x11];
    let cells = elgamal::encrypt(&joint, &bits, COUNT, PLACE.chunk, &[5; 32]).unwrap();
    let share = |silo: usize| {
        elgamal::share(&joint, &secrets[silo], silo, &cells, PLACE, &[8; 32]).unwrap()
    };
    let shares = [share(0), share(1)];
    Sent {
        decoder: Decoder::new(PLACE.hops),
        run,
        keys,
        proofs,
        joint,
        cells,
        shares,
        secrets,
        bits,
    }
});

/// Every step that takes cells.
fn steps(cells: &[u8], bits: &[u8], hops: u16) -> Vec<Result<Vec<u8>, Error>> {
    let (sent, seed) = (&*SENT, [4; 32]);
    let place = Place { chunk: 3, hops };
    let p = Probability::ratio(1, 3).unwrap();
    let variants = [
        Variant::Printed(p.clone()),
        Variant::Replace(p.clone()),
        Variant::Blinded,
    ];
    let mut made = vec![
        elgamal::overwrite(&sent.joint, cells, bits, bits, place, &seed),
        elgamal::flip(&sent.joint, cells, bits, place, &seed),
    ];
    made.extend(variants.map(|v| elgamal::hop(&sent.joint, cells, bits, &v, place, &seed)));
    made
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn keys(bytes in prop_oneof![bytes(100), prop::collection::vec(any::<u8>(), 32)]) {
        match PublicKey::decode(&bytes, 1) {
            Ok(key) => prop_assert_eq!(&key.to_bytes()[..], &bytes[..]),
            Err(error) => prop_assert_eq!(error.silo(), Some(1)),
        }
    }

    #[test]
    fn any_keys_and_proofs(
        key in prop_oneof![bytes(100), Just(SENT.keys[1].to_vec())], proof in bytes(100),
        right: bool,
    ) {
        let proof = if right { SENT.proofs[1].to_vec() } else { proof };
        let valid = key == SENT.keys[1] && right;
        let found = JointKey::agree(&SENT.run, &SENT.members(&key, &proof));
        prop_assert_eq!(found.is_ok(), valid);
    }

    #[test]
    fn changed_keys_and_proofs(at in changes()) {
        let proof = changed(&SENT.proofs[1], &at);
        prop_assume!(proof != SENT.proofs[1]);
        let found = JointKey::agree(&SENT.run, &SENT.members(&SENT.keys[1], &proof));
        prop_assert_eq!(found.unwrap_err().silo(), Some(1));
        let key = changed(&SENT.keys[1], &at);
        let found = JointKey::agree(&SENT.run, &SENT.members(&key, &SENT.proofs[1]));
        prop_assert_eq!(found.is_ok(), key == SENT.keys[1]);
    }

    #[test]
    fn any_cells(
        cells in prop_oneof![bytes(300), (0usize..9).prop_map(|n| vec![0; n * CELL_BYTES])],
        bits in bytes(3), hops: u16, count in 0usize..40,
    ) {
        let whole = cells.len() % CELL_BYTES == 0;
        for made in steps(&cells, &bits, hops) {
            // No cells at all are a chunk too; what is drawn at random is none.
            prop_assert!(made.is_err() || (whole && cells.is_empty()));
        }
        let sent = &*SENT;
        let made = elgamal::share(&sent.joint, &sent.secrets[1], 1, &cells, PLACE, &[8; 32]);
        prop_assert!(made.is_err() || cells.is_empty());
        let made = elgamal::encrypt(&sent.joint, &bits, count, 0, &[5; 32]);
        prop_assert_eq!(made.is_ok(), bits.len() == count.div_ceil(8));
    }

    #[test]
    fn changed_cells(at in changes()) {
        let (sent, cells) = (&*SENT, changed(&SENT.cells, &at));
        prop_assume!(cells != sent.cells);
        for cells in steps(&cells, &sent.bits, 1).into_iter().flatten() {
            prop_assert_eq!(cells.len(), COUNT * CELL_BYTES);
        }
        // The silos' shares are bound to the cells that they saw.
        let shares = sent.shares.each_ref().map(|share| &share[..]);
        let found = elgamal::combine(&sent.joint, &sent.decoder, &cells, &shares, 3);
        prop_assert!(found.is_err());
    }

    #[test]
    fn shares(message in bytes(400), at in changes(), silo in 0usize..2, chunk: u64) {
        let sent = &*SENT;
        let open = |message: &[u8], chunk| {
            let mut shares = sent.shares.each_ref().map(|share| &share[..]);
            shares[silo] = message;
            elgamal::combine(&sent.joint, &sent.decoder, &sent.cells, &shares, chunk)
        };
        prop_assert_eq!(open(&sent.shares[silo], 3).unwrap(), &sent.bits[..]);
        prop_assert!(chunk == 3 || open(&sent.shares[silo], chunk).is_err());
        prop_assert_eq!(open(&message, 3).unwrap_err().silo(), Some(silo));
        let other = changed(&sent.shares[silo], &at);
        prop_assume!(other != sent.shares[silo]);
        prop_assert_eq!(open(&other, 3).unwrap_err().silo(), Some(silo));
        let cut = &other[..at[0].0.index(other.len())];
        prop_assert_eq!(open(cut, 3).unwrap_err().silo(), Some(silo));
    }
}

#[test]
fn huge_numbers_take_no_memory() {
    for count in HUGE {
        let made = elgamal::encrypt(&SENT.joint, &[1, 2, 3], count, 0, &[5; 32]);
        assert!(matches!(made, Err(Error::Length { .. })));
        let blinded = &Variant::Blinded;
        let made = elgamal::first_hop(&SENT.joint, &[1, 2], count, blinded, 0, &[5; 32]);
        assert!(matches!(made, Err(Error::Length { .. })));
    }
}
