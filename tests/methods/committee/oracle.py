"""What a committee should compute, written again with another library: seeds, streams, the coin."""

import hashlib

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from silograph.messages.identity import COORDINATOR, pack
from tests.methods.committee.run import CommitteeRun, Message

Words = npt.NDArray[np.uint64]
ROUNDS = ("seed", "match", "input", "check", "joint", "open", "tell", "sum", "done")


def expand(secret: bytes, label: str, context: bytes = b"") -> bytes:
    """HKDF-SHA256 for the use that a label and a context name."""
    name = f"silograph/{label}".encode()
    info = len(name).to_bytes(8, "little") + name + context
    return HKDF(hashes.SHA256(), 32, salt=None, info=info).derive(secret)


def stream(seed: bytes, view: bytes, words: int, *name: int) -> Words:
    """Words of the stream with a name: component, chunk, kind and two numbers."""
    context = view + b"".join(number.to_bytes(8, "little") for number in name)
    key = expand(seed, "committee/stream/v1", context)
    cipher = Cipher(algorithms.AES256(key), modes.CTR(bytes(16)))
    return np.frombuffer(cipher.encryptor().update(bytes(8 * words)), dtype="<u8")


class Oracle:
    """Everything secret of one run, from the secrets of its parties."""

    VIEW = b"silograph/committee/view/v1"

    def __init__(self, run: CommitteeRun) -> None:
        self._run = run
        given, binding = run.parameters, run.binding
        places = (*run.roster.places, COORDINATOR)
        self.secrets = secrets = {place: run.secret(place) for place in places}
        self._keys = {
            place: X25519PrivateKey.from_private_bytes(expand(secret, "run-key/v1"))
            for place, secret in secrets.items()
        }
        self._public = {
            place: key.public_key().public_bytes_raw() for place, key in self._keys.items()
        }
        head = (self.VIEW, run.run, given.digest, binding.roster.digest)
        public = (self._public[place] for place in places)
        self.view = hashlib.sha256(pack(*head, *public)).digest()
        #: The seed of each component; member n draws that of the component before it.
        self.seeds = [
            expand(secrets[given.members[(component + 1) % 4]], "committee/seed/v1")
            for component in range(4)
        ]
        #: The seeds of silos outside the committee, by silo and component.
        self.outside = {
            (silo, component): expand(
                secrets[silo], "committee/outside/v1", str(component).encode()
            )
            for silo in range(given.silos)
            for component in range(4)
        }

    def words(self, chunk: int, component: int, *name: object) -> Words:
        """A stream of the run: ``input`` silo, ``mask`` gate sender, ``coin`` place."""
        given, kind = self._run.parameters, name[0]
        numbers = [int(str(number)) for number in name[1:]]
        seed = self.seeds[component]
        if kind == "input" and numbers[0] not in given.members:
            seed = self.outside[numbers[0], component]
        code = ("input", "mask", "coin").index(str(kind))
        count = given.bit_bytes(chunk) // 8
        last = numbers[1] if len(numbers) > 1 else 0
        return stream(seed, self.view, count, component, chunk, code, numbers[0], last)

    def drawn(self, chunk: int) -> npt.NDArray[np.int64]:
        """The random number that the coin of each pair compares with its numerator."""
        given = self._run.parameters
        value = np.zeros(given.bit_bytes(chunk) * 8, np.int64)
        for place in range(given.places):
            bit = np.bitwise_xor.reduce([self.words(chunk, c, "coin", place) for c in range(4)])
            value += np.unpackbits(bit.view(np.uint8), bitorder="little").astype(np.int64) << place
        return value[: given.chunk_size(chunk)]

    def coin(self) -> int:
        """The coins of all pairs, as the bits of one number."""
        given, total = self._run.parameters, 0
        for chunk in range(given.chunks):
            bits = np.packbits(self.drawn(chunk) < given.numerator, bitorder="little").tobytes()
            total |= int.from_bytes(bits, "little") << chunk * given.chunk_pairs
        return total

    def content(self, message: Message) -> bytes:
        """A decrypted message: its key is for one sender and one receiver, in one direction."""
        run, envelope = self._run, message.envelope
        first, second = sorted((envelope.sender, envelope.receiver))
        ends = [
            part
            for place in (first, second)
            for part in (self._public[place], run.roster.member(place).public)
        ]
        bound = (run.run, run.parameters.digest, run.roster.digest)
        shared = self._keys[first].exchange(X25519PublicKey.from_public_bytes(self._public[second]))
        pair = expand(shared, "pair/v1", pack(*bound, *ends))
        key = expand(pair, "committee/key/v1", str(envelope.sender).encode())
        nonce = ROUNDS.index(envelope.round).to_bytes(4, "little")
        nonce += envelope.sequence.to_bytes(8, "little")
        places = b"".join(n.to_bytes(2, "little") for n in (envelope.sender, envelope.receiver))
        places += envelope.sequence.to_bytes(4, "little")
        header = pack(b"silograph/secrecy/v1", *bound, envelope.round.encode(), places)
        return ChaCha20Poly1305(key).decrypt(nonce, envelope.payload, header)
