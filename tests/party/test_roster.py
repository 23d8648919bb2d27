"""Roster files: what is signed, what is refused, how keys are rotated and revoked."""

import hashlib
import tempfile
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silograph.errors import RosterError
from silograph.messages.identity import Identity, Member, Roster
from silograph.party import roster as roster_module
from silograph.party.roster import (
    Revocation,
    RosterFile,
    digest_text,
    new_roster,
    read_roster,
    roster_text,
    roster_words,
    write_roster,
)
from tests.support.parties import SeededEntropy

DAY = date(2031, 5, 6)


@cache
def identity(number: int) -> Identity:
    return Identity(SeededEntropy(number).bytes(32))


def public(number: int) -> bytes:
    return identity(number).public


@pytest.fixture
def draft() -> RosterFile:
    made = new_roster("hub", public(0))
    for i, name in enumerate(("north", "south", "west"), 1):
        made = made.add(name, public(i))
    return made


@pytest.fixture
def helped(draft: RosterFile) -> RosterFile:
    """With two helpers, in their own organisations."""
    draft = draft.add("notary", public(10), "helper", "Notary & Sons")
    return draft.add("campus", public(11), "helper", "University")


@pytest.fixture
def signed(draft: RosterFile) -> RosterFile:
    for i in range(4):
        draft = draft.sign(identity(i))
    return draft


def changed_text(roster: RosterFile, old: str, new: str) -> str:
    text = roster_text(roster)
    assert old in text
    return text.replace(old, new, 1)


def read_text(path: Path, text: str) -> RosterFile:
    path.write_text(text)
    return read_roster(path)


class TestFile:
    def test_comes_back(self, signed: RosterFile, helped: RosterFile, tmp_path: Path) -> None:
        for roster in (
            signed,
            signed.rotate("north", public(9), DAY, 'a "quoted" \\ reason'),
            helped,
            helped.sign(identity(10)).add("east", public(5), organisation='"Ost" \\ é 銀行'),
        ):
            write_roster(tmp_path / "r", roster)
            found = read_roster(tmp_path / "r")
            assert found == roster
            assert roster_text(found) == roster_text(roster)
            assert found.digest == roster.digest

    def test_people_may_add_comments_and_space(self, signed: RosterFile, tmp_path: Path) -> None:
        text = roster_text(signed).replace("\n", "  # hello\n\n")
        assert read_text(tmp_path / "r", text) == signed

    def test_new_files_replace_nothing(self, signed: RosterFile, tmp_path: Path) -> None:
        write_roster(tmp_path / "r", signed, new=True)
        with pytest.raises(RosterError, match="never overwritten"):
            write_roster(tmp_path / "r", signed, new=True)

    def test_golden(self, draft: RosterFile) -> None:
        """What people have signed must stay signed."""
        assert (
            digest_text(draft.digest)
            == "sha256:ffc3e7c90ec1a97bf11acc43d53400e353eeea4f94efa483c544ec58955a9d77"
        )
        later = draft.sign(identity(0)).revoke("west", DAY, "left")
        assert (
            digest_text(later.digest)
            == "sha256:f8a0265652c5b2591af01021c4a61e5e51ff6984492df6d293ddb260c17be754"
        )
        helped = draft.add("notary", public(10), "helper", "Notary & Sons")
        assert (
            digest_text(helped.digest)
            == "sha256:6a7a9d2325888f0142c9111e6eb3bc09b39960bb4eb2992d278a53a64cedaa0b"
        )
        north, notary = (f"ed25519:{public(i).hex()}" for i in (1, 10))
        text = roster_text(helped)
        assert 'kind = "silograph roster"\nversion = 2\nserial = 1\n\n[coordinator]\n' in text
        assert (
            f'[[members]]\nrole = "silo"\nname = "north"\norganisation = "north"\nkey = "{north}"\n'
        ) in text
        assert (
            '[[members]]\nrole = "helper"\nname = "notary"\norganisation = "Notary & Sons"\n'
            f'key = "{notary}"\n'
        ) in text

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("version = 2", "version = 1", "roster of version 1; this Silograph reads version 2"),
            ("version = 2", "version = 3", "roster of version 3; this Silograph reads version 2"),
            ("version = 2", "version = true", "without a version"),
            ('"silograph roster"', '"silograph"', "not a roster"),
            ("serial = 1", "serial = 0", "serial 1 replaces no roster"),
            ("serial = 1", "serial = 2", "names the one before"),
            ("serial = 1", "serial = 1.0", "serial is not of its kind"),
            ("serial = 1", "serial = true", "serial is not of its kind"),
            ("serial = 1", 'serial = 1\nprevious = "x"', "not a digest"),
            ("serial = 1", 'serial = 1\ncolour = "red"', "a field 'colour', which is unknown"),
            ("serial = 1\n", "", "has no serial"),
            ('name = "north"', 'name = "south"', "the same name"),
            ('name = "north"', 'name = "North"', "not a party's name"),
            ('name = "north"', 'name = "all"', "not a party's name"),
            ('name = "north"', 'name = "no.rth"', "not a party's name"),
            ('name = "north"', 'name = "-north"', "not a party's name"),
            ('name = "north"', 'name = "north*"', "not a party's name"),
            ('name = "north"', 'name = ""', "not a party's name"),
            ('name = "north"', f'name = "{"n" * 64}"', "not a party's name"),
            ('name = "north"', 'nom = "north"', "a field 'nom'"),
            ("[coordinator]", "[chief]", "a field 'chief'"),
            ('key = "ed25519:', 'key = "rsa:', "not a public key"),
            ("[[members]]", "[[silos]]", "a field 'silos'"),
            ("[[members]]", "[[members]]\nplace = 1", "a field 'place'"),
            ('role = "silo"', "role = 1", "member 1: role is not of its kind"),
            ('role = "silo"\n', "", "member 1 has no role"),
            (
                'role = "silo"',
                'role = "coordinator"',
                "'coordinator' is not a role: silo or helper",
            ),
            ('role = "silo"', 'role = "Silo"', "member 1: 'Silo' is not a role"),
            ('role = "silo"', 'role = ""', "member 1: '' is not a role"),
            ("[coordinator]", '[coordinator]\nrole = "silo"', "a field 'role'"),
            ('organisation = "north"\n', "", "member 1 has no organisation"),
            ('organisation = "hub"\n', "", "has no organisation"),
            ('organisation = "north"', "organisation = 1", "organisation is not of its kind"),
            ('organisation = "north"', 'organisation = ""', "north: '' is not an organisation"),
            ('organisation = "hub"', 'organisation = ""', "hub: '' is not an organisation"),
            ('organisation = "north"', 'organisation = " "', "not an organisation"),
            ('organisation = "north"', 'organisation = "south "', "no space at an end"),
            ('organisation = "north"', 'organisation = "a\\nb"', "not an organisation"),
            ('organisation = "north"', 'organisation = "a\\u202eb"', "not an organisation"),
            ('organisation = "north"', f'organisation = "{"n" * 201}"', "1 to 200 characters"),
        ],
    )
    def test_refusals(
        self, draft: RosterFile, tmp_path: Path, old: str, new: str, said: str
    ) -> None:
        with pytest.raises(RosterError, match=said) as caught:
            read_text(tmp_path / "r", changed_text(draft, old, new))
        assert str(tmp_path / "r") in str(caught.value)

    def test_helpers_are_refused_alike(self, helped: RosterFile, tmp_path: Path) -> None:
        notary, campus = (f"ed25519:{public(i).hex()}" for i in (10, 11))
        for old, new, said in (
            ('name = "notary"', 'name = "north"', "the same name"),
            ('name = "notary"', 'name = "hub"', "the same name"),
            ('name = "notary"', 'name = "campus"', "the same name"),
            (notary, f"ed25519:{public(1).hex()}", "the same key"),
            (notary, f"ed25519:{public(0).hex()}", "the same key"),
            (notary, campus, "the same key"),
            ('role = "helper"', 'role = "helpers"', "member 4: 'helpers' is not a role"),
        ):
            with pytest.raises(RosterError, match=said):
                read_text(tmp_path / "r", changed_text(helped, old, new))

    def test_members_of_mixed_roles(self, helped: RosterFile, tmp_path: Path) -> None:
        """People may write them in any order; silos have the first places."""
        head, *members = roster_text(helped).split("[[members]]")
        last, tail = members.pop().split("[signatures]")
        mixed = "[[members]]".join([head, last, *members]) + "[signatures]" + tail
        found = read_text(tmp_path / "r", mixed)
        assert [m.name for m in found.roster.silos] == ["north", "south", "west"]
        assert [m.name for m in found.roster.helpers] == ["campus", "notary"]

    def test_keys(self, draft: RosterFile, tmp_path: Path) -> None:
        north = draft.roster.silos[0].public.hex()
        for key, said in (
            (draft.roster.silos[1].public.hex(), "the same key"),
            ("00" * 32, "not an Ed25519 public key"),
            ("ff" * 32, "not an Ed25519 public key"),
        ):
            with pytest.raises(RosterError, match=said):
                read_text(tmp_path / "r", changed_text(draft, north, key))

    def test_absent_and_large(self, tmp_path: Path) -> None:
        with pytest.raises(RosterError, match="No such file"):
            read_roster(tmp_path / "absent")
        (tmp_path / "large").write_bytes(b"#" * (1 << 21))
        with pytest.raises(RosterError, match="larger than"):
            read_roster(tmp_path / "large")

    def test_too_many(self) -> None:
        entries = tuple(Revocation(f"x{i}", i.to_bytes(32), DAY, "r") for i in range(1001))
        with pytest.raises(RosterError, match="at most 1000"):
            RosterFile(new_roster("hub", public(0)).roster, revoked=entries)

    def test_a_roster_without_organisations_is_no_file(self) -> None:
        bare = Roster(Member("hub", public(0)), (Member("north", public(1), "North"),))
        with pytest.raises(RosterError, match="'' is not an organisation"):
            RosterFile(bare)


class TestSignatures:
    def test_who_has_signed(self, draft: RosterFile) -> None:
        assert draft.missing == ("hub", "north", "south", "west")
        some = draft.sign(identity(2)).sign(identity(0))
        assert some.signed_by == ("hub", "south")
        assert some.missing == ("north", "west")
        assert some.digest == draft.digest
        with pytest.raises(RosterError, match="not signed by north, west"):
            some.check_complete()
        some.sign(identity(1)).sign(identity(3)).check_complete()

    def test_strangers_cannot_sign(self, draft: RosterFile) -> None:
        with pytest.raises(RosterError, match="not in the roster"):
            draft.sign(identity(9))

    def test_a_strangers_signature_is_refused(self, signed: RosterFile, tmp_path: Path) -> None:
        text = roster_text(signed) + f'east = "{"00" * 64}"\n'
        with pytest.raises(RosterError, match="signed by 'east', who is not in the roster"):
            read_text(tmp_path / "r", text)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('name = "north"', 'name = "nord"'),
            ("serial = 1", f'serial = 2\nprevious = "sha256:{"00" * 32}"'),
            ('role = "silo"', 'role = "helper"'),
            ('organisation = "north"', 'organisation = "south"'),
            ('organisation = "hub"', 'organisation = "south"'),
        ],
    )
    def test_what_is_signed_cannot_be_changed(
        self, signed: RosterFile, tmp_path: Path, old: str, new: str
    ) -> None:
        text = changed_text(signed, old, new).replace(
            "north = ", "nord = " if "nord" in new else "north = "
        )
        with pytest.raises(RosterError, match="not on this roster"):
            read_text(tmp_path / "r", text)

    def test_everything_is_covered(self, signed: RosterFile) -> None:
        """Each part of the content moves the digest, and so does the order of the silos."""
        coordinator, silos = signed.roster.coordinator, signed.roster.silos
        gone = (Revocation("east", public(7), DAY, "left"),)
        bare = RosterFile(signed.roster, 2, bytes(32), gone)
        others = [
            replace(bare, serial=3),
            replace(bare, previous=b"\1" * 32),
            replace(bare, revoked=()),
            replace(bare, revoked=(replace(gone[0], name="eest"),)),
            replace(bare, revoked=(replace(gone[0], key=public(8)),)),
            replace(bare, revoked=(replace(gone[0], date=date(2031, 5, 7)),)),
            replace(bare, revoked=(replace(gone[0], reason="Left"),)),
            replace(bare, roster=replace(signed.roster, silos=silos[::-1])),
            replace(bare, roster=replace(signed.roster, silos=silos[:2])),
            replace(bare, roster=replace(signed.roster, silos=silos[:2], helpers=silos[2:])),
            replace(
                bare,
                roster=replace(
                    signed.roster, silos=(*silos[:2], replace(silos[2], organisation="w"))
                ),
            ),
            replace(
                bare, roster=replace(signed.roster, coordinator=replace(coordinator, name="h"))
            ),
            replace(
                bare,
                roster=replace(signed.roster, coordinator=replace(coordinator, public=public(8))),
            ),
        ]
        assert len({bare.digest, *(other.digest for other in others)}) == len(others) + 1
        assert bare.roster.digest == replace(bare, serial=3).roster.digest

    def test_a_signature_is_for_one_roster_only(self, signed: RosterFile) -> None:
        later = signed.add("east", public(5))
        for name, signature in signed.signatures.items():
            with pytest.raises(RosterError, match=f"signature of {name} is not on this roster"):
                replace(later, signatures={name: signature})

    def test_a_signature_is_a_members_own(self, signed: RosterFile) -> None:
        swapped = {"north": signed.signatures["south"]}
        with pytest.raises(RosterError, match="signature of north"):
            replace(signed, signatures=swapped)

    def test_merge(self, draft: RosterFile) -> None:
        copies = [draft.sign(identity(i)) for i in range(4)]
        whole = copies[0].merge(copies[1]).merge(copies[2]).merge(copies[3])
        whole.check_complete()
        with pytest.raises(RosterError, match="different rosters"):
            whole.merge(whole.add("east", public(5)))


class TestChanges:
    def test_a_draft_is_changed_in_place(self, draft: RosterFile) -> None:
        assert (draft.serial, draft.previous) == (1, None)
        assert draft.rotate("north", public(5), DAY).serial == 1

    def test_what_was_signed_gets_a_successor(self, draft: RosterFile, signed: RosterFile) -> None:
        for later in (
            draft.sign(identity(1)).add("east", public(5)),
            signed.rotate("north", public(5), DAY),
            signed.rotate("hub", public(5), DAY),
            signed.revoke("north", DAY, "left"),
        ):
            assert (later.serial, later.previous) == (2, draft.digest)
            assert later.signatures == {}
            assert later.add("far", public(6)).serial == 2, "still a draft"

    def test_rotate(self, signed: RosterFile) -> None:
        later = signed.rotate("south", public(5), DAY, "lost")
        assert [m.name for m in later.roster.silos] == ["north", "south", "west"]
        assert later.roster.silos[1].public == public(5)
        assert later.revoked == (Revocation("south", public(2), DAY, "lost"),)
        with pytest.raises(RosterError, match="was revoked on 2031-05-06"):
            later.sign(identity(2))
        later.sign(identity(5))
        assert signed.rotate("hub", public(5), DAY).roster.coordinator.public == public(5)

    def test_revoke(self, signed: RosterFile) -> None:
        later = signed.revoke("south", DAY, "left")
        assert [m.name for m in later.roster.silos] == ["north", "west"]
        with pytest.raises(RosterError, match="rotate its key"):
            signed.revoke("hub", DAY, "left")
        with pytest.raises(RosterError, match="not in the roster"):
            signed.revoke("east", DAY, "left")
        with pytest.raises(RosterError, match="a reason has"):
            signed.revoke("south", DAY, "two\nlines")

    def test_helpers_come_and_go(self, helped: RosterFile) -> None:
        assert helped.missing == ("hub", "north", "south", "west", "notary", "campus")
        for i in (0, 1, 2, 3, 10):
            helped = helped.sign(identity(i))
        with pytest.raises(RosterError, match="not signed by campus"):
            helped.check_complete()
        helped = helped.sign(identity(11))
        helped.check_complete()
        turned = helped.rotate("notary", public(12), DAY, "lost")
        turned.check_follows(helped)
        assert turned.roster.silos == helped.roster.silos
        assert turned.roster.helpers == (
            Member("notary", public(12), "Notary & Sons"),
            helped.roster.helpers[1],
        )
        assert turned.revoked == (Revocation("notary", public(10), DAY, "lost"),)
        left = helped.revoke("notary", DAY, "left")
        left.check_follows(helped)
        assert [m.name for m in left.members] == ["hub", "north", "south", "west", "campus"]
        more = helped.add("east", public(5))
        more.check_follows(helped)
        assert [m.name for m in more.roster.silos] == ["north", "south", "west", "east"]
        assert [m.name for m in more.roster.helpers] == ["notary", "campus"]
        assert [more.roster.member(place).name for place in (3, 4)] == ["east", "notary"]

    def test_a_role_or_an_organisation_is_signed_by_all(self, helped: RosterFile) -> None:
        for i in (0, 1, 2, 3, 10, 11):
            helped = helped.sign(identity(i))
        for name, role, organisation in (
            ("north", "helper", None),
            ("notary", "silo", None),
            ("north", None, "North Bank"),
            ("notary", None, "Notaries"),
            ("hub", None, "Institute"),
            ("campus", "silo", "College"),
        ):
            later = helped.change(name, role, organisation)
            assert (later.serial, later.previous) == (2, helped.digest)
            assert later.signatures == {}
            assert later.revoked == ()
            later.check_follows(helped)
            for signer, signature in helped.signatures.items():
                with pytest.raises(RosterError, match=f"signature of {signer} is not on"):
                    replace(later, signatures={signer: signature})
        north = helped.change("north", "helper", "North Bank").roster
        assert [m.name for m in north.silos] == ["south", "west"]
        assert north.helpers[0] == Member("north", public(1), "North Bank")
        with pytest.raises(RosterError, match="the coordinator has no other role"):
            helped.change("hub", "silo")
        with pytest.raises(RosterError, match="already"):
            helped.change("north", "silo", "north")
        with pytest.raises(RosterError, match="not in the roster"):
            helped.change("nobody", "silo")

    def test_a_revoked_key_never_comes_back(self, signed: RosterFile, tmp_path: Path) -> None:
        later = signed.rotate("south", public(5), DAY)
        with pytest.raises(RosterError, match="the key of east is revoked"):
            later.add("east", public(2))
        with pytest.raises(RosterError, match="the key of south is revoked"):
            later.rotate("south", public(2), DAY)
        text = changed_text(later, public(5).hex(), public(2).hex())
        with pytest.raises(RosterError, match="the key of south is revoked"):
            read_text(tmp_path / "r", text)
        with pytest.raises(RosterError, match="revoked twice"):
            replace(later, revoked=later.revoked * 2)

    def test_successors(self, signed: RosterFile) -> None:
        second = signed.rotate("south", public(5), DAY).sign(identity(0))
        third = second.add("east", public(6)).sign(identity(0))
        signed.check_replaces(signed.serial, signed.digest)
        second.check_follows(signed)
        third.check_follows(second)
        with pytest.raises(RosterError, match="does not name as previous"):
            third.check_follows(signed)
        with pytest.raises(RosterError, match="an old roster"):
            signed.check_follows(second)
        other = signed.add("east", public(7))
        with pytest.raises(RosterError, match="same serial"):
            other.check_replaces(second.serial, second.digest)

    def test_no_revocation_is_dropped(self, signed: RosterFile) -> None:
        second = signed.rotate("south", public(5), DAY).sign(identity(0))
        third = second.add("east", public(6))
        with pytest.raises(RosterError, match="revoked is no longer"):
            replace(third, revoked=()).check_follows(second)
        silos = tuple(m for m in third.roster.silos if m.name != "north")
        silent = replace(third, roster=replace(third.roster, silos=silos))
        with pytest.raises(RosterError, match="the key of north is gone, and is not revoked"):
            silent.check_follows(second)


class TestAnyBytes:
    def read(self, content: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "r")
            path.write_bytes(content)
            try:
                found = read_roster(path)
                write_roster(path, found)
                assert read_roster(path) == found
                said = str(path)
            except RosterError as error:
                said = str(error)
            assert str(path) in said

    @settings(max_examples=200, deadline=None)
    @given(st.binary(max_size=300))
    def test_noise(self, content: bytes) -> None:
        self.read(content)

    @pytest.mark.slow
    @settings(max_examples=200, deadline=None)
    @given(st.data())
    def test_damage(self, data: st.DataObject) -> None:
        base = new_roster("hub", public(0)).add("north", public(1)).sign(identity(0))
        base = base.add("notary", public(3), "helper", "Notary & Sons").sign(identity(0))
        later = base.rotate("north", public(2), DAY).sign(identity(2))
        content = bytearray(roster_text(later).encode())
        for _ in range(data.draw(st.integers(1, 4))):
            place = data.draw(st.integers(0, len(content) - 1))
            content[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        self.read(bytes(content))

    @settings(max_examples=150, deadline=None)
    @given(
        st.dictionaries(
            st.sampled_from(
                ["serial", "previous", "members", "revoked", "signatures", "coordinator"]
            ),
            st.sampled_from(
                ["1", "2", '"x"', "[]", "{}", "[1]", "[[]]", "[{}]", "{x = 1}", "2031-05-06", "nan",
                 '[{name = "a", key = 1}]', '[{role = "silo"}]', '[{role = 1, name = "a"}]',
                 '[{name = "a"}]', "[{name = 2031-05-06T00:00:00}]"]
            ),
        )
    )  # fmt: skip
    def test_values_of_every_kind(self, fields: dict[str, str]) -> None:
        head = 'kind = "silograph roster"\nversion = 2\n'
        self.read((head + "".join(f"{k} = {v}\n" for k, v in fields.items())).encode())


class TestWords:
    LIST = Path(roster_module.__file__).with_name("words.txt")

    def test_the_list_is_the_published_one(self) -> None:
        content = self.LIST.read_bytes()
        digest = "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda"
        assert hashlib.sha256(content).hexdigest() == digest
        words = content.decode().split()
        assert len(words) == len({word[:4] for word in words}) == 2048

    def test_they_are_fixed(self) -> None:
        assert " ".join(roster_words(bytes(range(32)))) == (
            "whisper together borrow entry super hip calm flee direct trust daring eager"
        )

    def test_every_bit_of_the_digest_counts(self) -> None:
        """Not the first 132 alone."""
        seen = {roster_words((1 << place).to_bytes(32)) for place in (0, 1, 255)}
        assert len(seen) == 3
        assert all(len(words) == 12 for words in seen)
