"""The ElGamal union (the paper's Algorithm 3): the rounds and parameters of its two machines.

Rounds
    ``key``      each silo publishes an ElGamal key with a proof of possession
    ``keys``     the coordinator relays all of them
    ``confirm``  each silo signs a digest of roster, parameters and all keys
    ``confirms`` the coordinator relays all; a silo continues only if all digests agree
    ``work``     the coordinator sends a chunk of cells to the silo whose turn it is
    ``hop``      that silo rewrites every cell, and signs what came in and what went out
    ``open``     the coordinator shows all silos the final cells, with every silo's hop receipt
    ``share``    each silo sends its decryption shares of combinations that it forms itself

The coordinator relays chunk by chunk, so all silos work at the same time, as in a pipeline. After
pass 1 of ``blinded`` it holds encryptions of the exact union. So a silo opens a chunk only if every
hop is signed by the silo whose turn it was, on the output of the previous hop, and it opens each
chunk once. The coordinator is semi-honest here; silos are semi-honest in every protocol.
"""

import hashlib
import struct
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from silograph.errors import ArgumentError, CryptoError, PayloadError
from silograph.messages.envelope import Binding, Envelope, peek
from silograph.messages.identity import pack, unpack
from silograph.messages.rounds import Chunked
from silograph.methods.elgamal.cipher import PROOF_BYTES, JointKey, Member, Run, Variant

__all__ = [
    "CHUNK_CELLS",
    "COORDINATOR_STEPS",
    "KEY_BYTES",
    "RECEIPT",
    "SILO_STEPS",
    "WORK",
    "ElgamalParameters",
    "State",
    "cell_slot",
    "joint_key",
]

#: The number of cells in a chunk: 1 MiB when sent.
CHUNK_CELLS = 1 << 14
#: The size of a public key with its proof of possession.
KEY_BYTES = 32 + PROOF_BYTES
#: A hop's receipt: chunk, hop, and the digests of what came in and what went out.
RECEIPT = struct.Struct("<QI32s32s")
#: The chunk and the hop that is due.
WORK = struct.Struct("<QI")


@dataclass(frozen=True)
class ElgamalParameters(Chunked):
    """What all parties of a run must agree on, and sign."""

    variant: Variant
    #: p of randomized response (printed, replace), or b of every silo's flip (blinded).
    coin: Fraction
    silos: int
    pairs: int
    #: The digest of the node universe that the pairs belong to.
    subject: bytes
    chunk_pairs: int = CHUNK_CELLS

    def __post_init__(self) -> None:
        if self.variant not in ("printed", "replace", "blinded") or not 0 <= self.coin <= 1:
            raise ArgumentError("variant or coin is wrong")
        self.check_chunks()

    @property
    def hops(self) -> int:
        """How often each chunk is rewritten: once by every silo, or twice in ``blinded``."""
        return self.silos * (2 if self.variant == "blinded" else 1)

    @property
    def digest(self) -> bytes:
        """SHA-256 of every parameter."""
        numbers = (self.silos, self.pairs, self.chunk_pairs)
        fields = [str(number).encode() for number in numbers]
        fields += [self.variant.encode(), str(self.coin).encode(), self.subject]
        return hashlib.sha256(pack(b"silograph/elgamal/v1", *fields)).digest()


class State(StrEnum):
    """The states of a machine."""

    NEW = "new"
    KEYS = "waiting for keys"
    CONFIRMS = "waiting for confirmations"
    AGREED = "agreed, not yet authorised"
    CELLS = "cells"
    DONE = "done"


#: All steps that a silo can take; anything else is refused and changes nothing.
SILO_STEPS: dict[tuple[State, str], State] = {
    (State.NEW, "start"): State.KEYS,
    (State.KEYS, "keys"): State.CONFIRMS,
    (State.CONFIRMS, "confirms"): State.AGREED,
    (State.AGREED, "authorise"): State.CELLS,
    (State.CELLS, "work"): State.CELLS,
    (State.CELLS, "open"): State.CELLS,
}
#: All steps of the coordinator.
COORDINATOR_STEPS: dict[tuple[State, str], State] = {
    (State.KEYS, "key"): State.KEYS,
    (State.KEYS, "all keys"): State.CONFIRMS,
    (State.CONFIRMS, "confirm"): State.CONFIRMS,
    (State.CONFIRMS, "all confirms"): State.CELLS,
    (State.CELLS, "hop"): State.CELLS,
    (State.CELLS, "share"): State.CELLS,
    (State.CELLS, "all chunks"): State.DONE,
}


def cell_slot(parameters: ElgamalParameters, message: Envelope) -> int:
    """The slot of a message; messages about cells carry chunk and hop in their payload."""
    payload = message.payload
    if message.round in ("work", "hop"):
        (head, _) = unpack(payload, 2)
        if message.round == "hop":
            head = peek(head).payload
            if len(head) != RECEIPT.size:
                return 0
        elif len(head) != WORK.size:
            return 0
        chunk, hop = WORK.unpack(head[: WORK.size])
        return int(chunk * parameters.hops + hop)
    if message.round == "open":
        return int.from_bytes(unpack(payload, 2 + parameters.hops)[0][:8], "little")
    if message.round == "share":
        return int.from_bytes(payload[:8], "little")
    return message.sequence


def joint_key(binding: Binding, keys: list[bytes]) -> JointKey:
    """The joint key, after all keys and proofs are checked; an error names the wrong key's silo."""
    silos = binding.roster.silos
    members = [
        Member(silo.public, key[:-PROOF_BYTES], key[-PROOF_BYTES:])
        for silo, key in zip(silos, keys, strict=True)
    ]
    try:
        return JointKey.agree(Run(binding.run, binding.roster.digest), members)
    except CryptoError as error:
        name = None if error.silo is None else silos[error.silo].name
        raise PayloadError(str(error), silo=name, round="key") from None
