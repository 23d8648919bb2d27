"""What is said of queries, methods, protocols and observers, in plain words."""

import math
import re
from dataclasses import dataclass

from silograph.dp.loss import shown_loss
from silograph.estimators.estimate import Estimate

__all__ = [
    "Told",
    "assumptions",
    "certainty",
    "limits",
    "meaning",
    "method_told",
    "observer",
    "query_name",
    "what_is_learnt",
]

_MEANINGS = {
    "edges": "Pairs of nodes that at least one silo holds as an edge.",
    "degrees": "For each node, how many edges it has in the union of all silos.",
    "degree_histogram": "How many nodes have a degree in each range.",
    "triangles": "Three nodes, each joined to the other two.",
    "node_triangles": "For each node, the triangles that it is a corner of.",
    "four_cycles": "Rings of four nodes, each joined to the next.",
    "clustering": "The share of all 2-stars whose ends are joined as well: 3·triangles/2-stars.",
    "mixing": "Edges within each public group of nodes, and between each two groups.",
    "degrees_by": "For each public group, how many edges its nodes have on average.",
    "triangles_by": "Triangles with all corners in one public group, and all others.",
    "assortativity": "Whether edges prefer nodes of one group: 1 if all are inside groups, 0 if "
    "they fall by chance.",
    "modularity": "The share of edges inside groups, less what it would be by chance.",
    "local_clustering": "For each node, the share of its pairs of neighbours that are joined.",
    "degree_correlation": "Whether nodes of many edges are joined to others of many edges: from "
    "−1 to 1.",
}
_NAMES = {
    "degree_histogram": "Degree distribution",
    "node_triangles": "Triangles at each node",
    "four_cycles": "4-cycles",
    "clustering": "Clustering coefficient",
    "mixing": "Edges within and between groups",
    "degrees_by": "Mean degrees by group",
    "triangles_by": "Triangles by group",
    "local_clustering": "Clustering at each node",
    "degree_correlation": "Degree correlation",
}
_GROUP = re.compile(r"(?:(coordinator) \+ )?(\d+) silos?(?: \+ (release|reports))?")


@dataclass(frozen=True)
class Told:
    """A name and what it means."""

    name: str
    text: str


_METHODS = {
    "feat": Told(
        "feat",
        "All silos make one noisy graph of their edges together, the release. Each pair of nodes "
        "is shown or not by a single toss of a coin; answers take the known odds of that coin out "
        "again, so that on average they are right.",
    ),
    "feat+": Told(
        "feat+",
        "A part of ε makes a noisy graph of all edges, the release. With the rest every silo "
        "sends a noisy number that mends the release's answer by what its own edges say.",
    ),
    "sealed": Told(
        "sealed",
        "The union of all edges was counted exactly, on shares that no party could read. Only the "
        "sum of the exact count and of noise was opened.",
    ),
    "baseline": Told(
        "baseline",
        "Every silo reported its own edges, each pair under noise at a part ε/m of the budget. "
        "Answers take the known odds of the noise out again.",
    ),
}
_PROTOCOLS = {
    "masked": Told(
        "masked union",
        "What a silo sends is hidden by masks that cancel in the sum of all silos. The "
        "coordinator learns the sums, and the noise is in them before anyone can look.",
    ),
    "committee": Told(
        "union of a committee",
        "Four members hold shares of the union, and none of them can read it. They flip each pair "
        "by a coin that nobody knows, and only then is it opened.",
    ),
    "elgamal/blinded": Told(
        "ElGamal union, blinded",
        "The union is made under encryption that only all silos together can open, and every silo "
        "adds noise to it before it is opened.",
    ),
    "elgamal/replace": Told(
        "ElGamal union, replace",
        "The union is made under encryption. The last silo that holds a pair makes its noise, or "
        "else the first silo. It protects against the coordinator, and not against the silos "
        "themselves, who know their own noise.",
    ),
    "elgamal/printed": Told(
        "ElGamal union as printed",
        "The paper's Algorithm 3 to the letter, for its reproduction: every holder of an edge "
        "adds to the loss, and the answers are calibrated wrongly.",
    ),
    "clear": Told(
        "drawn in the clear",
        "No protocol was run: one process held all edges and drew the noise. The numbers have "
        "the same law as those of a real run; nobody's edges were hidden from that process.",
    ),
    "reports": Told(
        "reports",
        "Each silo sent its own noisy edges to the coordinator, which sees them silo by silo.",
    ),
}
_COUNTING = Told(
    "committee that counts",
    "Four members hold shares of the union, and none of them can read it. They turn its bits into "
    "shared numbers, count by themselves, and add noise before anything is opened.",
)

_FOLDING = Told(
    "nodes in groups",
    "A public hash puts the nodes into groups and gives each a sign. The noise is about pairs of "
    "groups instead of pairs of nodes. An edge still counts in one place alone, so it is protected "
    "as before. Most of what does not belong together cancels by the signs; edges that fall into "
    "one place are counted by an estimate.",
)


def query_name(answer: Estimate[float]) -> str:
    """What is counted, as a title.

    >>> query_name(Estimate("kstars", 1.0, 1.0, 1.0, parameters={"k": 3}))
    '3-stars'
    """
    if answer.query == "kstars":
        return f"{answer.parameters.get('k', 'k')}-stars"
    return _NAMES.get(answer.query, answer.query.replace("_", " ").capitalize())


def meaning(answer: Estimate[float]) -> str:
    """What is counted, in a sentence; nothing for a query that nobody knows here."""
    if answer.query == "kstars":
        k = answer.parameters.get("k", "k")
        return f"A node and {k} of its neighbours, counted over all choices: Σ C(degree, {k})."
    return _MEANINGS.get(answer.query, "")


def method_told(method: str, protocol: str, *, folded: bool = False) -> list[Told]:
    """What the method does, and how the silos did it together."""
    counting = method == "sealed" and protocol == "committee"
    known = [
        _METHODS.get(method),
        _FOLDING if folded else None,
        _COUNTING if counting else _PROTOCOLS.get(protocol),
    ]
    return [told for told in known if told is not None]


def certainty(epsilon: float) -> str:
    """How sure one can become of an edge that was as likely as not, rounded up.

    >>> certainty(1.0), certainty(3.0), certainty(0.0), certainty(9.0), certainty(40.0)
    ('73.2 %', '95.3 %', '50.0 %', '99.988 %', 'almost 100 %')
    """
    doubt = 1 / (1 + math.exp(min(epsilon, 700.0)))
    if doubt < 1e-9:
        return "almost 100 %"
    digits = max(1, -math.floor(math.log10(100 * doubt)) + (doubt < 0.01))
    return f"{math.ceil(round(100 * (1 - doubt) * 10**digits, 6)) / 10**digits:.{digits}f} %"


def what_is_learnt(epsilon: float, delta: float = 0.0) -> str:
    """What a loss means for one edge.

    >>> what_is_learnt(math.inf)
    'Everything: whether any given edge exists.'
    """
    if math.isinf(epsilon):
        return "Everything: whether any given edge exists."
    if epsilon == 0:
        return "Nothing."
    failing = f", but for a chance of {shown_loss(delta)} that this bound fails" if delta else ""
    return (
        f"Nothing beyond ε = {shown_loss(epsilon)}: a 50 % guess about one edge becomes "
        f"{certainty(epsilon)} sure at most{failing}."
    )


_COMMITTEE = {
    "coordinator + 1 member": "The coordinator together with any member of the committee",
    "1 member + release": "Any member of the committee that also sees the release",
    "1 member + answers": "Any member of the committee that also sees the answers",
    "2 members": "Any 2 members of the committee that pool what they hold",
}


def observer(view: str) -> str:
    """Who a view is, in words; a name that nobody knows here stays as it is.

    >>> observer("coordinator + 2 silos")
    'The coordinator together with any 2 silos'
    >>> observer("1 silo + release")
    'Any silo that also sees the release'
    >>> observer("2 members")
    'Any 2 members of the committee that pool what they hold'
    """
    if view == "coordinator":
        return "The coordinator alone"
    if view == "published":
        return "Anyone who sees what was published"
    if view in _COMMITTEE:
        return _COMMITTEE[view]
    found = _GROUP.fullmatch(view)
    if found is None:
        return view
    several = f"{found[2]} silos" if found[2] != "1" else "silo"
    if found[1]:
        return f"The coordinator together with any {several}"
    seen = {"reports": "all reports"}.get(found[3], f"the {found[3]}")
    sees = "that also sees" if found[2] == "1" else "that pool what they know and see"
    return f"Any {several} {sees} {seen}"


def assumptions(
    method: str, protocol: str, silos: int, collusion: int, *, inside: bool = False
) -> list[str]:
    """What must hold for the losses on the page to hold.

    ``inside`` says that the coordinator is one of a committee's four members.
    """
    if protocol == "clear":
        return ["Whoever drew it held all edges, and may be trusted with them."]
    same = "All silos use the same public node list; its digest is below."
    if protocol == "committee":
        return [
            "Of the committee's four members, of whom the coordinator is one, at most one is "
            "dishonest. It may cheat, alone or together with silos outside the committee: they "
            "can spoil the answer, and learn no more."
            if inside
            else "Of the committee's four members at most one is dishonest. It may cheat, alone or "
            "together with the coordinator and with silos outside the committee: they can spoil "
            "the answer, and learn no more.",
            "Two members that pool what they hold see every edge.",
            same,
        ]
    found = [
        "Every silo follows the protocol and draws its noise; silos may pool what they see.",
    ]
    pool = "1 silo pools" if collusion == 1 else f"{collusion} silos pool"
    if protocol == "reports":
        found.append("Nothing of the coordinator: each silo protects itself by its own noise.")
    elif protocol == "elgamal/replace":
        found += [
            "The silos trust each other with their edges.",
            "The coordinator follows the protocol, and colludes with no silo.",
        ]
    else:
        found.append(
            f"At most {pool} what they know with the coordinator, of {silos}."
            if collusion
            else "No silo pools with the coordinator, and none gets to see the release."
        )
        if protocol == "masked":
            found.append(
                "Nothing of the coordinator: it may do anything, and learns no more. (That the "
                "answer is right does rest on it.)"
            )
        else:
            found.append("The coordinator follows the protocol.")
    return [*found, same]


def limits(method: str, epsilon: float, delta: float = 0.0, protocol: str = "") -> list[str]:
    """What is not protected, whatever the method."""
    ten = f"ε = {shown_loss(10 * epsilon)}" if math.isfinite(epsilon) else "infinite"
    if delta:
        ten += ", and its δ is larger still"
    if protocol != "committee":
        lies = (
            "A silo that lies about its edges or its noise can spoil the answer, and can weaken "
            "the protection of others."
        )
    elif method == "sealed":
        lies = (
            "A silo that lies about its edges, and a member that adds a number of its own to a "
            "count, can spoil the answer."
        )
    else:
        lies = "A silo that lies about its edges can spoil the answer."
    found = [
        "The node list is public. That a person or an account is on it is not hidden.",
        "One edge is protected, not a node's whole neighbourhood: for ten edges at once the bound "
        f"is {ten}.",
        "Each run adds up. The ledger of each silo keeps the sum over all runs on its data.",
        "What holds for the graph as a whole is meant to be learnt, and anyone may draw "
        "conclusions from it.",
        lies,
        "Who runs all parties on one machine, as in a simulation, sees all edges there.",
    ]
    if method in ("baseline", "feat+"):
        found.insert(
            2,
            "Which silos hold an edge shows in what they send, as far as ε allows. At which silo a "
            "node has many edges may show plainly.",
        )
    return found
