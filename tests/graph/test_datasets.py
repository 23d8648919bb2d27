"""The dataset registry: counts, folders, and the download over a loopback server."""

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from silograph.errors import ArgumentError, DatasetError
from silograph.graph import dataset, download, samples

CONTENT = gzip.compress(b"# toy\n0 1\n1 2\n2 0\n2 3\n")


@pytest.fixture(autouse=True)
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test may see the user's own files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SILOGRAPH_DATA", raising=False)
    return tmp_path


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> samples.Entry:
    """A dataset of four edges in the registry."""
    entry = samples.Entry("toy.txt.gz", 4, 4, 1)
    monkeypatch.setitem(samples.REGISTRY, "toy", entry)
    return entry


class Handler(BaseHTTPRequestHandler):
    """Serves the toy file, and bad answers under other paths."""

    def do_GET(self) -> None:
        if "missing" in self.path:
            self.send_error(404)
            return
        self.send_response(200)
        if "endless" not in self.path:
            self.send_header("Content-Length", str(len(CONTENT) + 100 * ("short" in self.path)))
        self.end_headers()
        self.wfile.write(CONTENT * (50 if "endless" in self.path else 1))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Says nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a loopback server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()
        thread.join()


@pytest.mark.parametrize("name", list(samples.REGISTRY))
def test_published_counts(name: str, data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = samples.REGISTRY[name]
    graph = dataset(name, folder=data_folder)
    assert (len(graph.universe), len(graph), graph.triangles()) == (
        entry.nodes,
        entry.edges,
        entry.triangles,
    )
    assert graph.name == name
    monkeypatch.setenv("SILOGRAPH_DATA", str(data_folder))
    assert dataset(name.upper()) == graph


def test_places_in_order(
    toy: samples.Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = samples.cache_folder()
    assert cache == tmp_path / "cache" / "silograph"
    cache.mkdir(parents=True)
    (cache / toy.file).write_bytes(CONTENT)
    assert dataset("toy").report.source == str(cache / toy.file)
    given = tmp_path / "given"
    given.mkdir()
    monkeypatch.setenv("SILOGRAPH_DATA", str(given))
    assert dataset("toy").report.source == str(cache / toy.file)
    (given / toy.file).write_bytes(CONTENT)
    assert dataset("toy").report.source == str(given / toy.file)
    with pytest.raises(DatasetError, match=r"there is no file toy.txt.gz in"):
        dataset("toy", folder=tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/ada")
    assert samples.cache_folder() == Path("/home/ada/.cache/silograph")


def test_download(toy: samples.Entry, server: str) -> None:
    assert len(dataset("toy", base_url=server)) == 4
    cache = samples.cache_folder()
    assert [file.name for file in cache.iterdir()] == [toy.file]
    assert len(dataset("toy", base_url="https://nowhere.invalid/")) == 4  # from the cache


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing/", r"cannot be fetched \(Not Found\)"),
        ("short/", "ended after .* of .* bytes|cannot be fetched"),
        ("endless/", "more than 1,000 bytes"),
    ],
)
def test_bad_downloads_leave_nothing(
    toy: samples.Entry,
    server: str,
    path: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(download.fetch, "__kwdefaults__", {"most": 1000, "timeout": 5.0})
    with pytest.raises(DatasetError, match=message) as caught:
        dataset("toy", base_url=server + path)
    assert "set SILOGRAPH_DATA to a folder that has the file" in str(caught.value)
    assert list(samples.cache_folder().iterdir()) == []


def test_without_a_network(toy: samples.Entry) -> None:
    with pytest.raises(DatasetError, match=r"toy.txt.gz is not in .*cannot be fetched.*SILOGRAPH_"):
        dataset("toy", base_url="http://127.0.0.1:9/")
    for url in ("http://snap.stanford.edu/data/", "file:///etc/", "ftp://127.0.0.1/"):
        with pytest.raises(DatasetError, match="is not an https address"):
            dataset("toy", base_url=url)


def test_wrong_and_damaged_files(toy: samples.Entry, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="no dataset 'enron'; there are facebook, wiki-vote"):
        dataset("enron")
    path = tmp_path / toy.file
    path.write_bytes(gzip.compress(b"0 1\n1 2\n2 3\n3 0\n"))
    with pytest.raises(
        DatasetError, match=r"has 4 nodes, 4 edges and 0 triangles, where 4 nodes, 4 edges and 1"
    ):
        dataset("toy", folder=tmp_path)
    path.write_bytes(CONTENT[:-4])
    with pytest.raises(DatasetError, match=r"gzip data are damaged.*delete the file"):
        dataset("toy", folder=tmp_path)
