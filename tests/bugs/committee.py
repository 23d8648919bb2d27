"""Bugs in the committee's union: noise, shares, checks, encryption, order."""

from tests.bugs.bug import Bug

__all__ = ["BUGS"]

_CHUNK = "crates/core/src/committee/chunk.rs"
_OPENING = "crates/core/src/committee/opening.rs"
_SEEDS = "crates/core/src/committee/seeds.rs"
_ROUTES = "crates/core/src/committee/mod.rs"
_MEMBER = "src/silograph/methods/committee/member.py"
_SILO = "src/silograph/methods/committee/party.py"
_COORDINATOR = "src/silograph/methods/committee/coordinator.py"
_ROUNDS = "src/silograph/methods/committee/rounds.py"
_COIN = "src/silograph/methods/committee/noise.py"

_FOLDER = "pytest tests/methods/committee/"
_NOISE = f"{_FOLDER}test_noise.py"
_UNION = f"{_FOLDER}test_union.py -k holder_set"
_MEMORY = f"{_FOLDER}test_union.py -k TestMemory"
_MODEL = f"{_FOLDER}test_views.py -k every_message_is_that_of_the_model"
_FALSIFIED = f"{_FOLDER}test_hostile.py -k TestFalsified"
_REFUSED = f"{_FOLDER}test_hostile.py -k TestRefused"
_STATES = f"{_FOLDER}test_hostile.py -k TestStates"
_BITS = f"{_FOLDER}test_hostile.py -k TestBits"

_COST = [
    Bug(
        "k of the committee's coin one too small",
        "the coin is rounded down, so the loss is above the one that is claimed",
        _COIN,
        "        numerator = math.ceil(Fraction(optimum) * 2**places)\n"
        "        # The optimum was rounded: one step decides whether the loss is certainly small enough.\n"
        "        while not ratio_within(Fraction(2**places - numerator, numerator), epsilon):\n"
        "            numerator += 1\n",
        "        numerator = max(1, math.floor(Fraction(optimum) * 2**places))\n",
        _NOISE,
    ),
    Bug(
        "the committee's loss of two members claimed finite",
        "two members have the union together",
        _COIN,
        "if together > (0 if self.inside else 1):",
        "if together > (0 if self.inside else 2):",
        _NOISE,
    ),
    Bug(
        "the coordinator inside a committee claims t = 1",
        "the coordinator and a member are two members",
        _COIN,
        "if together > (0 if self.inside else 1):",
        "if together > 1:",
        _NOISE,
    ),
    Bug(
        "collusion of two members of a committee accepted",
        "a study asks for a promise that nobody can keep",
        _COIN,
        "        if collusion > 1:\n",
        "        if collusion > 2:\n",
        _NOISE,
    ),
    Bug(
        "an even numerator of the committee's coin accepted",
        "the first place is taken for a one: the coin is another one",
        _ROUNDS,
        "if self.numerator % 2 == 0:",
        "if self.numerator % 2 == 2:",
        _NOISE,
    ),
    Bug(
        "digits of the committee's coin in the wrong order",
        "the coin is one with another probability",
        _ROUNDS,
        "coin = [bool(self.numerator >> place & 1) for place in range(self.places)]",
        "coin = [True, *(bool(self.numerator >> place & 1) for place in range(self.places - 1, 0, -1))]",
        _NOISE,
    ),
    Bug(
        "the committee's coin compared the wrong way",
        "a digit that is one and a digit that is zero change places in the gates",
        _CHUNK,
        "                    true => [bit, negated(self.coin.clone())],\n"
        "                    false => [negated(bit), self.coin.clone()],\n",
        "                    false => [bit, negated(self.coin.clone())],\n"
        "                    true => [negated(bit), self.coin.clone()],\n",
        _NOISE,
    ),
    Bug(
        "the union opened without its coin",
        "the coordinator sees the union itself",
        _CHUNK,
        "            add(&mut sum, &self.coin[component]);\n",
        "",
        _UNION,
    ),
]

_SHARES = [
    Bug(
        "a coin that one member of the committee knows",
        "its component of the random bits is always 0",
        _SEEDS,
        "        let key = self.key(component, chunk, purpose);\n",
        "        let key = self.key(component, chunk, purpose);\n"
        "        if component == 3 && matches!(purpose, Purpose::Coin { .. }) {\n            return;\n        }\n",
        _MODEL,
    ),
    Bug(
        "a component of every input in a committee is zero",
        "the member that lacks it lacks nothing, and sees all bits",
        _SEEDS,
        "        let key = self.key(component, chunk, purpose);\n",
        "        let key = self.key(component, chunk, purpose);\n"
        "        if component == 0 && matches!(purpose, Purpose::Input { .. }) {\n            return;\n        }\n",
        _MODEL,
    ),
    Bug(
        "seeds of a silo outside the committee that everyone knows",
        "its vector hides nothing",
        _MEMBER,
        'else secret.derive(b"silograph/committee/outside/v1", str(component).encode())',
        "else bytes([component] * 32)",
        _MODEL,
    ),
    Bug(
        "joint messages without masks",
        "the receiver sees products of components that it lacks",
        _CHUNK,
        "                stream.fill(bytes);\n",
        "                stream.fill(bytes);\n                bytes.fill(0);\n",
        _MODEL,
    ),
    Bug(
        "masks from the seed of another component",
        "the receiver can make the mask itself",
        _CHUNK,
        "(route, seeds.key(route.receiver, self.number, purpose))",
        "let other = [route.other, route.receiver][usize::from(route.other == self.place)];\n"
        "                (route, seeds.key(other, self.number, purpose))",
        _MODEL,
    ),
    Bug(
        "one mask for all gates of a committee",
        "two messages differ by what they should hide",
        _CHUNK,
        "let purpose = Purpose::Mask { gate, sender };",
        "let (gate, sender) = (gate % 2, sender);\n"
        "                let purpose = Purpose::Mask { gate, sender };",
        _MODEL,
    ),
    Bug(
        "one mask for both senders of a gate",
        "the same, within one gate",
        _SEEDS,
        "Self::Mask { gate, sender } => [1, gate as u64, sender as u64],",
        "Self::Mask { gate, .. } => [1, gate as u64, 0],",
        _MODEL,
    ),
    Bug(
        "committee streams without the chunk",
        "all chunks have the same masks and coins",
        _SEEDS,
        "for number in [component as u64, chunk].into_iter()",
        "for number in [component as u64, chunk & 0].into_iter()",
        _MODEL,
    ),
    Bug(
        "committee streams without the view",
        "runs that were confirmed differently draw the same bits from a seed",
        _SEEDS,
        "let mut context = self.view.to_vec();",
        "let mut context = [0; 32].to_vec();",
        _MODEL,
    ),
    Bug(
        "products of a component with itself left out",
        "the gates are not ANDs",
        _CHUNK,
        "let own = |c: usize, next: usize| next == (c + 1) % MEMBERS;",
        "let own = |c: usize, next: usize| next == (c + 5) % MEMBERS && c != 2;",
        _UNION,
    ),
    Bug(
        "a direction used in the wrong gates",
        "products of two components are missing in every second gate",
        _ROUTES,
        "[[0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 1, 1, 0]]",
        "[[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1], [0, 1, 1, 0]]",
        _UNION,
    ),
]

_CHECKS = [
    Bug(
        "joint messages used before they are compared",
        "hashes are compared in the last layer alone: what happens then tells the cheat others' bits",
        _CHUNK,
        "            if !bool::from(expected.finalize().as_slice().ct_eq(hash)) {\n",
        "            let last = self.layer + 1 == circuit.layers();\n"
        "            if last && !bool::from(expected.finalize().as_slice().ct_eq(hash)) {\n",
        _FALSIFIED,
    ),
    Bug(
        "a mismatch of joint messages passed over",
        "the member goes on with the next layer",
        _MEMBER,
        '        with self._comparing("joint", "products"):\n            chunk.core.hear(parts)\n',
        '        try:\n            with self._comparing("joint", "products"):\n                chunk.core.hear(parts)\n'
        "        except MismatchError:\n            if chunk.layer:\n                raise\n",
        _FALSIFIED,
    ),
    Bug(
        "the hash of one route not compared",
        "one member can falsify what it sends to another",
        _CHUNK,
        "            if !bool::from(expected.finalize().as_slice().ct_eq(hash)) {\n",
        "            let all = (sender, self.place) != (2, 3);\n"
        "            if all && !bool::from(expected.finalize().as_slice().ct_eq(hash)) {\n",
        _FALSIFIED,
    ),
    Bug(
        "hashes of joint messages cover the first gate alone",
        "the other gates of a layer can be falsified",
        _CHUNK,
        "            expected.update(message);\n",
        "            expected.update(message);\n"
        "            let active = circuit.gates(self.layer).filter(|gate| gate % 2 == route.parity);\n"
        "            if active.count() > 1 {\n                used.push((route, message));\n                continue;\n            }\n",
        _FALSIFIED,
    ),
    Bug(
        "hashes of joint messages without the layer",
        "a hash is as good in another layer",
        _CHUNK,
        "let names = [self.layer, route.sender, route.hasher, route.receiver];",
        "let names = [0, route.sender, route.hasher, route.receiver];",
        _MODEL,
    ),
    Bug(
        "hashes of joint messages without the receiver",
        "a hash is as good for another member",
        _CHUNK,
        "let names = [self.layer, route.sender, route.hasher, route.receiver];",
        "let names = [self.layer, route.sender, route.hasher, 0];",
        _MODEL,
    ),
    Bug(
        "committee hashes without the chunk",
        "a hash is as good in another chunk",
        _CHUNK,
        "    hash.update(chunk.to_le_bytes());\n",
        "",
        _MODEL,
    ),
    Bug(
        "the hash of an opening not compared",
        "one member chooses the answer",
        _OPENING,
        "if !bool::from(expected.ct_eq(came[hasher])) {",
        "if !bool::from(expected.ct_eq(came[hasher])) && sender > 1 {",
        _FALSIFIED,
    ),
    Bug(
        "inputs of a committee not compared",
        "an owner gives two members different vectors, and sees what becomes of it",
        _MEMBER,
        "            for place, digest in chunk.digests.items():\n                if came[place] != digest:",
        "            for place, digest in chunk.digests.items():\n"
        "                if len(came[place]) != len(digest):",
        _FALSIFIED,
    ),
    Bug(
        "inputs of silos outside the committee not compared",
        "the same, for a silo outside",
        _CHUNK,
        "            if ![low, high].contains(&vector_component(*owner, silo)) {\n",
        "            let travels = vector_component(*owner, silo);\n"
        "            if *owner != Owner::Outside && ![low, high].contains(&travels) {\n",
        f"{_FOLDER}test_hostile.py -k something_else",
    ),
    Bug(
        "seeds of a committee not compared",
        "members draw different masks, and hashes fail in a way that tells bits",
        _MEMBER,
        "if digest != self._digests[place]:",
        "if len(digest) != len(self._digests[place]):",
        _FALSIFIED,
    ),
    Bug(
        "seeds of silos outside the committee not compared",
        "the same, for a silo outside",
        _MEMBER,
        "for held in (seeds, *outside):",
        "for held in (seeds,):",
        f"{_FOLDER}test_hostile.py -k something_else",
    ),
    Bug(
        "a committee's member goes on after a mismatch",
        "the run is not over: a cheat may try again and again",
        _MEMBER,
        "            self._sending = []\n            self.state = State.ENDED\n",
        "            self._sending = []\n",
        _FALSIFIED,
    ),
    Bug(
        "a committee's member says what it had begun to say",
        "messages that were made before a mismatch go out with the next ones",
        _MEMBER,
        "            self._sending = []\n            self.state = State.ENDED\n            raise\n",
        "            self.state = State.ENDED\n            if not self._sending:\n                raise\n            return self._sent()\n",
        f"{_FOLDER}test_hostile.py -k found_by_authorise",
    ),
    Bug(
        "the coordinator goes on after a false opening",
        "other chunks are opened as if nothing had happened",
        _COORDINATOR,
        "        except _core.MismatchError as error:\n            self.state = State.ENDED\n",
        "        except _core.MismatchError as error:\n",
        _FALSIFIED,
    ),
    Bug(
        "confirmations of a committee not compared",
        "parties that were shown different keys go on",
        _SILO,
        "        check_views(self._binding, views, self._view)\n",
        "        assert views\n",
        f"{_FOLDER}test_hostile.py -k different_keys",
    ),
    Bug(
        "our own key in a committee not compared",
        "the coordinator has put another one in its place",
        _SILO,
        "        check_own_key(binding, keys[place], self._secret.public(), place)\n",
        "        assert check_own_key\n",
        _FALSIFIED,
    ),
]

_ORDER = [
    Bug(
        "one key for both directions of a line",
        "two messages with one nonce, and a message that comes back as an answer",
        _MEMBER,
        'shared.derive(b"silograph/committee/key/v1", str(sender).encode())',
        'shared.derive(b"silograph/committee/key/v1", b"")',
        _REFUSED,
    ),
    Bug(
        "secrets of a committee sent to everyone",
        "a message that others may have as well is taken",
        _MEMBER,
        "        if message.receiver != own:\n",
        "        if message.receiver != message.receiver:\n",
        _REFUSED,
    ),
    Bug(
        "messages of a committee taken twice",
        "a second message takes the place of the first",
        _MEMBER,
        "if (number < self._done and name in _OF_CHUNKS) or _name(message) in seen:",
        "if number < self._done and name in _OF_CHUNKS:",
        _REFUSED,
    ),
    Bug(
        "messages of finished chunks taken again",
        "a chunk that was opened is kept again, for ever",
        _MEMBER,
        "if (number < self._done and name in _OF_CHUNKS) or _name(message) in seen:",
        "if _name(message) in seen:",
        _REFUSED,
    ),
    Bug(
        "chunks far ahead taken from members",
        "one member fills the memory of another",
        _MEMBER,
        "if ahead >= self._done + 2 * WINDOW:",
        "if ahead >= self._done + 200 * WINDOW:",
        _REFUSED,
    ),
    Bug(
        "all chunks of a committee at once",
        "memory grows with the number of pairs",
        _MEMBER,
        "while self._begun < min(self._done + WINDOW, self._allowed()):",
        "while self._begun < self._allowed():",
        _MEMORY,
    ),
    Bug(
        "silos outside the committee need not wait",
        "their vectors fill the memory of every member",
        _MEMBER,
        "return self._inputs.get(place, 0) < self._done + 2 * WINDOW",
        "return self._inputs.get(place, 0) < self._done + 2000 * WINDOW",
        _MEMORY,
    ),
    Bug(
        "sizes of a committee's messages not checked",
        "a message of any size is kept",
        _MEMBER,
        "if len(message.payload) != self._size(message) + TAG_BYTES:",
        "if len(message.payload) < TAG_BYTES:",
        _REFUSED,
    ),
    Bug(
        "a committee hears silos outside as members",
        "any silo can send hashes of products",
        _MEMBER,
        "                return member is not None and message.sequence == 0\n        return member is not None\n",
        "                return member is not None and message.sequence == 0\n        return True\n",
        _REFUSED,
    ),
    Bug(
        "vectors for a member that must not have them",
        "with its seeds they are the owner's bits",
        _MEMBER,
        "return given.travels(message.sequence, sender) not in (None, self._number)",
        "return given.travels(message.sequence, sender) is not None",
        _REFUSED,
    ),
    Bug(
        "a seed sent to the member that must lack it",
        "it holds all four components",
        _MEMBER,
        "            if number != missing:\n",
        "            if number != missing or number == 0:\n",
        _MODEL,
    ),
    Bug(
        "bits shared before the ledger",
        "a member starts as soon as its seeds are there",
        _MEMBER,
        "while self._authorised and self._matched:",
        "while self._matched:",
        _BITS,
    ),
    Bug(
        "seeds compared before the keys are confirmed",
        "a party that was shown other keys than the rest speaks of its seeds",
        _MEMBER,
        "        if not self._confirmed:\n            return\n",
        "",
        _STATES,
    ),
    Bug(
        "an opening from a party that is no member",
        "anyone in the roster can take part in an opening",
        _COORDINATOR,
        "        if member is None:\n",
        "        member = member or 0\n        if number < 0:\n",
        _REFUSED,
    ),
    Bug(
        "a silo outside a committee fills a member's memory",
        "what it has signed is taken without a bound, whatever stream it comes in",
        "src/silograph/methods/committee/member.py",
        'ahead = self._inputs.get(message.sender, number) if name == "input" else number',
        "ahead = -1 if message.sender in self._inputs else number",
        "pytest tests/methods/committee/test_hostile.py -k cannot_fill",
    ),
]

BUGS = [*_COST, *_SHARES, *_CHECKS, *_ORDER]
