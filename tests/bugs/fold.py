"""Bugs in folding: where edges fall, what a study names, what a hub search adds, who refuses."""

from tests.bugs.bug import Bug

__all__ = ["BUGS"]

_CORE = "crates/core/src/graph/fold.rs"
_FOLD = "src/silograph/graph/fold.py"
_STUDY = "src/silograph/methods/study.py"
_METHOD = "src/silograph/methods/method.py"
_FEAT = "src/silograph/methods/feat/method.py"
_RELEASE = "src/silograph/estimators/folded_release.py"
_FEDERATION = "src/silograph/local/federation.py"
_POLICY = "src/silograph/party/policy.py"
_SILO = "src/silograph/nats/silo.py"

_FILES = "pytest tests/estimators/test_folded_release.py"
_STUDIES = "pytest tests/methods/test_study.py -k Folded"
_LOCAL = "pytest tests/local/test_fold.py"
_CHECKS = "pytest tests/nats/test_fold.py -k Checks"

BUGS = [
    Bug(
        "fold: sub-buckets by the order of an edge's ends",
        "an edge that two silos write in other directions is two edges, and touches two buckets",
        _CORE,
        "hash.write(&a.min(b).to_le_bytes());\n        hash.write(&a.max(b).to_le_bytes());",
        "hash.write(&a.to_le_bytes());\n        hash.write(&b.to_le_bytes());",
        "cargo both_directions_of_an_edge",
    ),
    Bug(
        "fold: hubs stay in their groups",
        "the rows of hubs are empty",
        _CORE,
        "places[position as usize] = (row as u32) << 1;",
        "places[position as usize] |= (row as u32) << 30;",
        "cargo hubs_sit_alone",
    ),
    Bug(
        "fold: hubs with a sign",
        "two hubs' cell has one bucket, and its sign is lost",
        _CORE,
        "places[position as usize] = (row as u32) << 1;",
        "places[position as usize] = (row as u32) << 1 | 1;",
        "cargo hubs_sit_alone",
    ),
    Bug(
        "fold: the sign of one end",
        "edges of one cell no longer cancel at random",
        _CORE,
        "let minus = ((a ^ b) & 1) as usize * signs;",
        "let minus = (a & 1) as usize * signs;",
        "cargo both_directions_of_an_edge",
    ),
    Bug(
        "fold: cells that overlap",
        "an edge of two groups is in a bucket of a hub",
        _CORE,
        "(self.between_groups() + at * wide, self.sub)",
        "(self.beside_hubs() + at * wide, self.sub)",
        "cargo every_bucket_belongs_to_one_cell",
    ),
    Bug(
        "fold: buckets of both signs",
        "an edge touches two buckets, and costs twice as much",
        _CORE,
        "words[bucket / 64].fetch_or(1 << (bucket % 64), Ordering::Relaxed);",
        "words[bucket / 64].fetch_or(3 << (bucket % 64), Ordering::Relaxed);",
        "cargo both_directions_of_an_edge",
    ),
    Bug(
        "fold: groups by the remainder alone",
        "the last values of the hash are not drawn again",
        _CORE,
        "if word >> 1 < end {",
        "if word >> 1 < u64::MAX {",
        "cargo values_past_the_last_multiple",
    ),
    Bug(
        "fold: one key for all runs",
        "who knows the key chooses identifiers that collide",
        _FOLD,
        "hashlib.sha256(_LABEL + view).digest()",
        "hashlib.sha256(_LABEL).digest()",
        _LOCAL + " -k folding_of_the_union",
    ),
    Bug(
        "fold: buckets of the first run",
        "the buckets of one run are sent under the key of another",
        _FOLD,
        "return silo.fold(Folding.of(view, layout, hubs))",
        'return silo.fold(Folding.of(b"", layout, hubs))',
        _LOCAL + " -k folding_of_the_union",
    ),
    Bug(
        "fold: hubs are not handed on",
        "silos fold without the hubs that the study names",
        _FOLD,
        "return silo.fold(Folding.of(view, layout, hubs))",
        'return silo.fold(Folding.of(view, layout, ("",) * len(hubs)))',
        _LOCAL + " -k counts_of_hubs",
    ),
    Bug(
        "fold: any method",
        "a method that counts on pairs is given buckets",
        _METHOD,
        "if study.index.folded and not self.folds:",
        "if False:",
        _STUDIES,
    ),
    Bug(
        "fold: any query",
        "a study is paid for, and folded nodes cannot answer it",
        _METHOD,
        "FoldedRelease.check_query(study.query, study.k)",
        "pass",
        _STUDIES,
    ),
    Bug(
        "fold: a slow protocol",
        "milliseconds a bucket",
        _FEAT,
        'return self.study.protocol in ("masked", COMMITTEE, "clear")',
        "return True",
        _STUDIES,
    ),
    Bug(
        "fold: another form of identifiers",
        "silos that write identifiers differently fold one edge into two buckets",
        _STUDY,
        "if self.form != universe.form:",
        "if False:",
        _CHECKS,
    ),
    Bug(
        "fold: hubs that are no identifiers here",
        "a hub that one silo writes differently has a row there and none here",
        _STUDY,
        "if hub not in universe or universe.normal(hub) != hub:",
        "if False:",
        _CHECKS,
    ),
    Bug(
        "fold: identifiers are not checked",
        "a silo takes part in a study about other identifiers",
        _SILO,
        "study.index.check_ids(universe)",
        "pass",
        _CHECKS,
    ),
    Bug(
        "fold: an open study for a closed list",
        "a study without a node list is accepted by a silo that has one",
        _SILO,
        "if study.universe != universe.digest or study.nodes != (universe.size or 0):",
        "if study.universe != universe.digest and study.nodes != (universe.size or 0):",
        _CHECKS,
    ),
    Bug(
        "fold: a policy that nobody asks",
        "a silo whose operators do not allow folding takes part",
        _POLICY,
        "if study.index.folded and not self.fold:",
        "if False:",
        _CHECKS,
    ),
    Bug(
        "fold: any number of buckets",
        "a coordinator makes every silo work for days",
        _POLICY,
        "if study.bits > self.largest:",
        "if study.pairs > self.largest:",
        _CHECKS,
    ),
    Bug(
        "fold: a search for hubs that costs nothing",
        "a release does not state what finding its hubs took",
        _FEDERATION,
        "release = release.with_search(search.views, search.losses)",
        "pass",
        _LOCAL + " -k found_with_a_part",
    ),
    Bug(
        "fold: losses that do not add up",
        "the losses of a release are those without the search",
        _RELEASE,
        "losses={t: _sum(loss, search[t]) for t, loss in own.items()},",
        "losses=own,",
        _FILES + " -k TestSearch",
    ),
    Bug(
        "fold: losses of exactly so many",
        "a coalition is told less than a smaller one",
        _RELEASE,
        "own, search = worst_losses(self.losses), worst_losses(losses)",
        "own, search = dict(self.losses), dict(losses)",
        _FILES + " -k TestSearch",
    ),
    Bug(
        "fold: the least of a search",
        "a view that the search does not name adds what is best there",
        _RELEASE,
        "more = spent.get(view.name, views)",
        "more = spent.get(view.name, views[:1])",
        _FILES + " -k TestSearch",
    ),
    Bug(
        "fold: sums that are rounded down",
        "a total below what was spent",
        _RELEASE,
        "return round_up(sum(map(Fraction, losses), Fraction(0)))",
        "return sum(losses)",
        _FILES + " -k TestSearch",
    ),
    Bug(
        "fold: epsilon twice",
        "the search for hubs is paid for on top of epsilon",
        _FEDERATION,
        "epsilon = check_epsilon(float_below(Fraction(epsilon) - Fraction(share)))",
        "epsilon = check_epsilon(epsilon)",
        _LOCAL + " -k found_with_a_part",
    ),
    Bug(
        "fold: a search before anything is checked",
        "a study that is refused has cost a search",
        _FEDERATION,
        "expect(self._check_search(share, epsilon, protocol, collusion, fold, options))",
        "pass",
        _LOCAL + " -k TestHubs",
    ),
]
