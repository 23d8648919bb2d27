"""THIRD-PARTY.txt: the terms of every crate that is linked into the extension, and of a word list.

A wheel hands out compiled copies of these crates, and most of their licences ask that their notice
goes along. The same holds for the words in ``party/words.txt``. ``make licences`` writes the file;
with ``--check`` a file that is out of date is an error (a test does so).

A crate that offers the Apache License is used under it, and its text is in LICENSE. Of the others
the licence files are quoted, the same text once.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "THIRD-PARTY.txt"
PLATFORM = "x86_64-unknown-linux-gnu"
EXTENSION = "silograph-py"

HEAD = """\
Software by others in Silograph
===============================

The extension module silograph._core is linked from Silograph's own crates, from the standard
library of Rust (MIT OR Apache-2.0, used under Apache-2.0) and from the crates below. The text of
the Apache License, version 2.0, is in the file LICENSE.
"""


WORDS = """\
The word list silograph/party/words.txt
---------------------------------------

The English word list of BIP-39 (Marek Palatinus, Pavol Rusnak, Aaron Voisine, Sean Bowe), as in
the Python package mnemonic 0.21 (https://github.com/trezor/python-mnemonic), which is under these
terms:

The MIT License (MIT)

Copyright (c) 2013-2016 Pavol Rusnak

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
"""


class Crate(NamedTuple):
    """One crate that is linked in."""

    name: str
    version: str
    terms: str
    folder: Path

    @property
    def apache(self) -> bool:
        return "Apache-2.0" in re.split(r" OR |/", self.terms)


def linked() -> list[Crate]:
    """What the extension is linked from, without what only runs while it is built."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--offline"]
    done = subprocess.run(
        [*command, f"--filter-platform={PLATFORM}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    told: dict[str, Any] = json.loads(done.stdout)
    packages = {package["id"]: package for package in told["packages"]}
    edges = {node["id"]: node["deps"] for node in told["resolve"]["nodes"]}
    waiting = [key for key, package in packages.items() if package["name"] == EXTENSION]
    found: set[str] = set()
    while waiting:
        key = waiting.pop()
        macro = any("proc-macro" in target["kind"] for target in packages[key]["targets"])
        if key in found or macro:
            continue
        found.add(key)
        waiting += [
            edge["pkg"]
            for edge in edges[key]
            if any(kind["kind"] is None for kind in edge["dep_kinds"])
        ]
    return sorted(
        Crate(p["name"], p["version"], p["license"], Path(p["manifest_path"]).parent)
        for key in found
        if (p := packages[key])["source"] is not None
    )


def notices(crate: Crate) -> list[str]:
    """The licence files of a crate that must go along, as they are."""
    kinds = ("NOTICE",) if crate.apache else ("LICENSE", "LICENCE", "COPYING", "NOTICE")
    files = [path for path in sorted(crate.folder.iterdir()) if path.name.startswith(kinds)]
    if not crate.apache:
        files = [path for path in files if "UNLICENSE" not in path.name]
        if not files:
            raise SystemExit(f"{crate.name} {crate.version} ({crate.terms}) has no licence file")
    return [path.read_text(encoding="utf-8").strip() + "\n" for path in files]


def text() -> str:
    crates = linked()
    lines = [f"{c.name} {c.version}: {c.terms}" for c in crates]
    quoted: dict[str, list[str]] = defaultdict(list)
    for crate in crates:
        for notice in notices(crate):
            quoted[notice].append(f"{crate.name} {crate.version}")
    parts = [f"{HEAD}\n" + "\n".join(lines) + "\n"]
    for notice, names in quoted.items():
        title = ", ".join(names)
        parts.append(f"{title}\n{'-' * len(title)}\n\n{notice}")
    parts.append(WORDS)
    return "\n\n".join(parts)


def main() -> None:
    made = text()
    if "--check" not in sys.argv:
        TARGET.write_text(made, encoding="utf-8")
    elif not TARGET.is_file() or TARGET.read_text(encoding="utf-8") != made:
        raise SystemExit("THIRD-PARTY.txt is not what Cargo.lock says: make licences")


if __name__ == "__main__":
    main()
