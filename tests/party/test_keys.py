"""Identity files: modes, seals, damage, and no secret anywhere else."""

import stat
import traceback
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from silograph.errors import ArgumentError, KeyFileError, MissingExtraError
from silograph.messages.identity import Identity
from silograph.party import keys
from tests.support.parties import SeededEntropy

SECRET = SeededEntropy(1).bytes(32)
PASSPHRASE = "corrêct horse"  # noqa: S105


def clock() -> datetime:
    return datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scrypt as in real files takes some tenths of a second; one test keeps it."""
    monkeypatch.setattr(keys, "_LOG_N", 10)


@pytest.fixture(params=[None, PASSPHRASE], ids=["plain", "sealed"])
def made(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, str | None]:
    keys.new_identity(tmp_path / "x", request.param, entropy=SeededEntropy(1), clock=clock)
    return tmp_path / "x", request.param


def write(path: Path, content: bytes) -> Path:
    path.unlink(missing_ok=True)
    path.touch(0o600)
    path.write_bytes(content)
    return path


def test_comes_back(made: tuple[Path, str | None]) -> None:
    path, passphrase = made
    found = keys.load_identity(path, passphrase)
    assert found.public == Identity(SECRET).public
    assert found.sign(b"x") == Identity(SECRET).sign(b"x")
    shown = keys.show_identity(path)
    assert shown == keys.KeyFile(found.public, "2031-05-06T07:08:09+00:00", passphrase is not None)


def test_mode_and_no_overwriting(made: tuple[Path, str | None]) -> None:
    path, passphrase = made
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    with pytest.raises(KeyFileError, match="never overwritten"):
        keys.new_identity(path, passphrase)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["x"]
    path.chmod(0o640)
    for read in (lambda: keys.load_identity(path, passphrase), lambda: keys.show_identity(path)):
        with pytest.raises(KeyFileError, match=r"others can read or write it \(mode 0640\)"):
            read()


def test_golden(tmp_path: Path) -> None:
    """The form of a file is frozen; what was written must be read for ever."""
    keys.new_identity(tmp_path / "x", entropy=SeededEntropy(1), clock=clock)
    public = Identity(SECRET).public.hex()
    assert (tmp_path / "x").read_text() == (
        "# SECRET. Whoever has this file can speak for this party.\n"
        'kind = "silograph identity"\n'
        "version = 1\n"
        'created = "2031-05-06T07:08:09+00:00"\n'
        f'public = "ed25519:{public}"\n'
        f'secret = "{SECRET.hex()}"\n'
    )


def test_golden_seal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sealed file of old, with scrypt as it really is."""
    monkeypatch.undo()
    keys.new_identity(tmp_path / "x", PASSPHRASE, entropy=SeededEntropy(1), clock=clock)
    sealed = (tmp_path / "x").read_text().splitlines()[-1]
    assert sealed == (
        'sealed = "lnyLqvrwr84QNT7N2pExnNFn3U4zpkGiq/vxyJOARy73obA+k8A50mEORMlL4OyU'
        'SBcNeNVBkKOrwpW1maFZ18A0msoDCli4e+fdSg=="'
    )
    assert keys._LOG_N == 17


def test_sealed_files_do_not_hold_the_secret(tmp_path: Path) -> None:
    keys.new_identity(tmp_path / "x", PASSPHRASE, entropy=SeededEntropy(1))
    content = (tmp_path / "x").read_bytes()
    assert SECRET not in content
    assert SECRET.hex().encode() not in content
    assert PASSPHRASE.encode() not in content


def test_passphrases(tmp_path: Path) -> None:
    keys.new_identity(tmp_path / "plain")
    keys.new_identity(tmp_path / "sealed", "é")
    for path, passphrase, said in (
        ("plain", "x", "is not sealed"),
        ("sealed", None, "is sealed; its passphrase is needed"),
        ("sealed", "x", "wrong passphrase"),
    ):
        with pytest.raises(KeyFileError, match=said):
            keys.load_identity(tmp_path / path, passphrase)
    keys.load_identity(tmp_path / "sealed", "e\u0301")  # the same letter, composed otherwise
    for wrong in ("", "x" * 2000):
        with pytest.raises(ArgumentError, match="a passphrase has"):
            keys.new_identity(tmp_path / "new", wrong)
    assert not (tmp_path / "new").exists()


def test_two_files_share_nothing(tmp_path: Path) -> None:
    for name in "ab":
        keys.new_identity(tmp_path / name, PASSPHRASE)
    first, second = ((tmp_path / name).read_text().splitlines() for name in "ab")
    assert first[-1][:40] != second[-1][:40], "salts"
    assert keys.show_identity(tmp_path / "a").public != keys.show_identity(tmp_path / "b").public


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("version = 1", "version = 2", "identity file of version 2"),
        ("version = 1", "", "without a version"),
        ('kind = "silograph identity"', 'kind = "x"', "not an identity file"),
        ("created", "made", "other fields"),
        ("public", "pub", "other fields"),
        ("ed25519:", "x25519:", "no public key"),
        ('"2031-05', '"2032-05', "wrong passphrase, or the file was changed|nothing"),
        ("ed25519:", "ed25519:0", "no public key"),
    ],
)
def test_refusals(made: tuple[Path, str | None], old: str, new: str, said: str) -> None:
    path, passphrase = made
    text = path.read_text()
    assert text.count(old) == 1
    write(path, text.replace(old, new).encode())
    if passphrase is None and said.endswith("nothing"):
        keys.load_identity(path)  # nothing binds a plain file's date
        return
    with pytest.raises(KeyFileError, match=said) as caught:
        keys.load_identity(path, passphrase)
    assert str(path) in str(caught.value)


def test_another_public_key(made: tuple[Path, str | None]) -> None:
    path, passphrase = made
    other = Identity(bytes(32)).public.hex()
    text = path.read_text().replace(Identity(SECRET).public.hex(), other)
    write(path, text.encode())
    with pytest.raises(KeyFileError, match=r"not that of the public key|was changed"):
        keys.load_identity(path, passphrase)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_damage_gives_one_error_without_secrets(
    made: tuple[Path, str | None], data: st.DataObject
) -> None:
    path, passphrase = made
    content = bytearray(keys_text(passphrase))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    write(path, bytes(content))
    try:
        keys.load_identity(path, passphrase)
    except KeyFileError as error:
        said = "".join(traceback.format_exception(error, chain=True))
        line = said.splitlines()[-1]
        assert str(path) in line
        assert SECRET.hex()[:16] not in line


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=st.binary(max_size=300))
def test_any_bytes(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(KeyFileError):
        keys.load_identity(write(tmp_path / "x", content))


def keys_text(passphrase: str | None) -> bytes:
    """A file's content, made once."""
    if passphrase not in _texts:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            keys.new_identity(Path(folder, "x"), passphrase, entropy=SeededEntropy(1), clock=clock)
            _texts[passphrase] = Path(folder, "x").read_bytes()
    return _texts[passphrase]


_texts: dict[str | None, bytes] = {}


def test_nothing_shows_the_secret(made: tuple[Path, str | None]) -> None:
    path, passphrase = made
    found = keys.load_identity(path, passphrase)
    for text in (repr(found), str(found), repr(keys.show_identity(path))):
        assert SECRET.hex()[:16] not in text
        assert repr(SECRET)[2:20] not in text


@given(st.text(max_size=90))
def test_keys_as_text(text: str) -> None:
    try:
        assert keys.key_text(keys.read_key(text)) == text
    except ArgumentError:
        assert not text.startswith("ed25519:") or len(text) != 72 or text != text.lower()


@given(st.binary(min_size=32, max_size=32))
def test_keys_come_back(public: bytes) -> None:
    assert keys.read_key(keys.key_text(public)) == public
    with pytest.raises(ArgumentError):
        keys.read_key(keys.key_text(public).upper())


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain files need nothing more; sealed ones say what is missing."""
    import sys

    for name in [n for n in sys.modules if n.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    keys.new_identity(tmp_path / "plain")
    keys.load_identity(tmp_path / "plain")
    with pytest.raises(MissingExtraError, match=r"pip install 'silograph\[deploy\]'"):
        keys.new_identity(tmp_path / "sealed", PASSPHRASE)
    assert not (tmp_path / "sealed").exists()
