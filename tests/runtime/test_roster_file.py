"""Roster files: what is signed, what is refused, how keys are rotated and revoked."""

import tempfile
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from silograph.crypto.identity import Identity
from silograph.errors import RosterError
from silograph.runtime.roster_file import (
    Revocation,
    RosterFile,
    digest_text,
    new_roster,
    read_roster,
    roster_text,
    write_roster,
)
from tests.seeded import SeededEntropy

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
    def test_comes_back(self, signed: RosterFile, tmp_path: Path) -> None:
        for roster in (signed, signed.rotate("north", public(9), DAY, 'a "quoted" \\ reason')):
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
            == "sha256:5dfcc6b4d1747741b67e81fe81cf004d29f2f66b8df314f32efd3b321394c359"
        )
        later = draft.sign(identity(0)).revoke("west", DAY, "left")
        assert (
            digest_text(later.digest)
            == "sha256:c63349cdf4afc79cc90adfa2030f29c947be3e963c1d88ae35673066f19db972"
        )

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("version = 1", "version = 2", "roster of version 2; this Silograph reads version 1"),
            ("version = 1", "version = true", "without a version"),
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
            ("[[silos]]", "[[silos]]\nrole = 1", "a field 'role'"),
        ],
    )
    def test_refusals(
        self, draft: RosterFile, tmp_path: Path, old: str, new: str, said: str
    ) -> None:
        with pytest.raises(RosterError, match=said) as caught:
            read_text(tmp_path / "r", changed_text(draft, old, new))
        assert str(tmp_path / "r") in str(caught.value)

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

    @settings(max_examples=200, deadline=None)
    @given(st.data())
    def test_damage(self, data: st.DataObject) -> None:
        base = new_roster("hub", public(0)).add("north", public(1)).sign(identity(0))
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
                ["serial", "previous", "silos", "revoked", "signatures", "coordinator"]
            ),
            st.sampled_from(
                ["1", "2", '"x"', "[]", "{}", "[1]", "[[]]", "[{}]", "{x = 1}", "2031-05-06", "nan",
                 '[{name = "a", key = 1}]', '[{name = "a"}]', "[{name = 2031-05-06T00:00:00}]"]
            ),
        )
    )  # fmt: skip
    def test_values_of_every_kind(self, fields: dict[str, str]) -> None:
        head = 'kind = "silograph roster"\nversion = 1\n'
        self.read((head + "".join(f"{k} = {v}\n" for k, v in fields.items())).encode())
