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
]
