"""Bugs in the console: who gets in, what a request must prove, what a page may do."""

from tests.bugs.bug import Bug

__all__ = ["BUGS"]

_ACCESS = "src/silograph/console/access.py"
_TESTS = "pytest tests/console/test_access.py"

BUGS = [
    Bug(
        "console: a token that works twice",
        "whoever finds a token in a chat is somebody else",
        _ACCESS,
        'person, token="", token_until=0.0, session=',
        "person, session=",
        _TESTS + " -k TestPeople",
    ),
    Bug(
        "console: a session without an end",
        "a browser that was sold goes on deciding",
        _ACCESS,
        "return person if person.session_until > self._clock() else None",
        "return person",
        _TESTS + " -k TestPeople",
    ),
    Bug(
        "console: any host",
        "a foreign name that points to this machine reads its pages",
        _ACCESS,
        "if len(hosts) != 1 or hosts[0].lower() not in self._hosts:",
        "if len(hosts) != 1:",
        _TESTS + " -k another_host",
    ),
    Bug(
        "console: any origin",
        "a foreign page sends forms in a person's name",
        _ACCESS,
        'if headers.getlist("origin") != [f"{self._scheme}://{host}"]:',
        'if len(headers.getlist("origin")) != 1:',
        _TESTS + " -k another_origin",
    ),
    Bug(
        "console: forms that nobody looks at",
        "a form that was made elsewhere decides",
        _ACCESS,
        'if post and not _same(forgery_token(secret), state["form"].get(FORGERY, "")):',
        'if post and not state["form"].get(FORGERY, ""):',
        _TESTS + " -k forged",
    ),
    Bug(
        "console: scripts in pages",
        "a text from elsewhere runs",
        _ACCESS,
        "default-src 'none'; script-src 'self';",
        "default-src 'none'; script-src 'self' 'unsafe-inline';",
        _TESTS + " -k forbids",
    ),
    Bug(
        "console: an open port without TLS",
        "tokens and passphrases travel for all to read",
        "src/silograph/party/config.py",
        "if cert is None and host not in LOOPBACK:",
        "if cert is None and host is LOOPBACK:",
        _TESTS + " -k test_settings",
    ),
    Bug(
        "console: a purpose that is markup",
        "whoever proposes a study writes the page on which it is decided",
        "src/silograph/console/templates/silo_study.html",
        '<blockquote class="purpose big">{{ study.purpose or',
        '<blockquote class="purpose big">{{ study.purpose|safe or',
        "pytest tests/console/test_silo.py -k texts_of_others",
    ),
    Bug(
        "console: an answer's page with the session",
        "scripts of a page could act for whoever looks at it",
        "src/silograph/console/app.py",
        '"sandbox allow-scripts allow-downloads; default-src',
        '"sandbox allow-scripts allow-same-origin; default-src',
        "pytest tests/console/test_coordinator.py -k answer",
    ),
    Bug(
        "console: a form of any length",
        "a stranger fills the machine's memory before anybody has signed in",
        _ACCESS,
        "if left < 0:",
        "if left is None:",
        _TESTS + " -k longer_than_it_says",
    ),
    Bug(
        "console: connections that say nothing",
        "a stranger who only connects takes every place, and nobody can decide",
        "src/silograph/console/app.py",
        "        super().connection_made(transport)\n        self._wait()",
        "        super().connection_made(transport)",
        _TESTS + " -k silence",
    ),
    Bug(
        "console: who may only look starts studies",
        "a token without a key acts, and no signature tells who",
        "src/silograph/console/app.py",
        "        refusal = desk.may_sign(request.state.person)\n        if refusal:\n"
        "            return self._study(request, problem=refusal)\n",
        "",
        "pytest tests/console/test_coordinator.py -k carried_once",
    ),
    Bug(
        "console: the error of another study",
        "somebody approves for the best fold that there could be, and another one is counted",
        "src/silograph/methods/forecast.py",
        "FoldChoice(shape.groups, shape.hubs, shape.sub,",
        "FoldChoice(20 * shape.groups, shape.hubs, shape.sub,",
        "pytest tests/console/test_silo.py -k its_error",
    ),
    Bug(
        "console: undecided counts as answered",
        "a coordinator waits for machines where a person has not decided",
        "src/silograph/console/coordinator.py",
        "answered = sum(silo.phase not in UNANSWERED for",
        'answered = sum(silo.phase != "asked" for',
        "pytest tests/console/test_coordinator.py -k progress_by_silo",
    ),
]
