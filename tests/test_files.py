"""Files that are written whole or not at all, and read with their limits in mind."""

import os
import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph import whole_files
from silograph.errors import DeploymentError, LedgerError


def test_a_new_file(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        whole_files.create(tmp_path / "x", b"one", DeploymentError)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o600
    with pytest.raises(DeploymentError, match="never overwritten"):
        whole_files.create(tmp_path / "x", b"two", DeploymentError)
    assert (tmp_path / "x").read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["x"]


def test_a_replaced_file(tmp_path: Path) -> None:
    for content in (b"one", b"two"):
        whole_files.replace(tmp_path / "x", content, DeploymentError, mode=0o644)
        assert (tmp_path / "x").read_bytes() == content
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o644
    assert os.listdir(tmp_path) == ["x"]


def test_nothing_is_left_of_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for write in (whole_files.create, whole_files.replace):
        with pytest.raises(DeploymentError, match="No space left"):
            write(tmp_path / "x", b"one", DeploymentError)
    assert os.listdir(tmp_path) == []


def test_reading(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    path.chmod(0o600)
    assert whole_files.read(path, 5, DeploymentError, private=True) == b"12345"
    with pytest.raises(DeploymentError, match="larger than 4 bytes"):
        whole_files.read(path, 4, DeploymentError)
    for wrong, said in ((tmp_path, "Is a directory"), (tmp_path / "y", "No such file")):
        with pytest.raises(LedgerError, match=said):
            whole_files.read(wrong, 5, LedgerError)
    with pytest.raises(DeploymentError, match="cannot be read"):
        whole_files.read(Path("a\0b"), 5, DeploymentError)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DeploymentError, match="not a file"):
        whole_files.read(tmp_path / "pipe", 5, DeploymentError)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o777])
def test_what_others_can_touch_is_not_private(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "x"
    path.touch()
    path.chmod(mode)
    with pytest.raises(DeploymentError, match="others can"):
        whole_files.read(path, 5, DeploymentError, private=True)
    assert whole_files.read(path, 5, DeploymentError) == b""


def test_another_users_file_is_not_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.touch(0o600)
    if os.getuid() == 0:
        os.chown(path, 65534, 65534)
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    with pytest.raises(DeploymentError, match="another user"):
        whole_files.read(path, 5, DeploymentError, private=True)


@given(st.text().filter(str.isprintable))
def test_texts_come_back(text: str) -> None:
    assert tomllib.loads(f"x = {whole_files.quoted(text)}") == {"x": text}


@given(st.text(min_size=1).filter(lambda text: not text.isprintable()))
def test_only_printable_texts_are_written(text: str) -> None:
    with pytest.raises(DeploymentError):
        whole_files.quoted(text)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_toml_or_one_error(content: bytes) -> None:
    said = "x: not "
    try:
        whole_files.parse_toml(Path("x"), content, LedgerError)
    except LedgerError as error:
        said = str(error)
    assert said.startswith("x: not ")


@pytest.mark.parametrize("content", [b"x = " + b"[" * 50_000, b"x = " + b"9" * 50_000])
def test_brackets_and_digits_without_end(content: bytes) -> None:
    with pytest.raises(DeploymentError):
        whole_files.parse_toml(Path("x"), content, DeploymentError)


class TestVersions:
    FORMAT = whole_files.Format("thing", 3, reads=(2, 3))

    @pytest.mark.parametrize("version", [2, 3])
    def test_known(self, version: int) -> None:
        assert self.FORMAT.check(version, "f", LedgerError) == version

    @pytest.mark.parametrize(
        ("found", "said"),
        [
            (1, "thing of version 1; this Silograph reads versions 2 and 3. .* older one"),
            (4, "thing of version 4; .* newer one: update Silograph here"),
            (0, "without a version"),
            (None, "without a version"),
            ("3", "without a version"),
            (True, "without a version"),
            (3.0, "without a version"),
        ],
    )
    def test_others(self, found: object, said: str) -> None:
        with pytest.raises(LedgerError, match=f"f: .*{said}"):
            self.FORMAT.check(found, "f", LedgerError)

    def test_every_format_reads_what_it_writes(self) -> None:
        for value in vars(whole_files).values():
            if isinstance(value, whole_files.Format):
                assert value.check(value.current, "f", LedgerError) == value.current
