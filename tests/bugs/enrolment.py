"""Bugs in enrolments: files that are believed, keys that travel, words that nobody compares."""

from tests.bugs.bug import Bug

__all__ = ["BUGS"]

_FILES = "pytest tests/party/test_enrolment.py"
_FLOW = "pytest tests/nats/test_consortium.py"
_COMMANDS = "pytest tests/cli/test_enrol.py"
_ALERTS = "pytest tests/test_deploy.py"

BUGS = [
    Bug(
        "enrolment: a file's signature is not looked at",
        "whoever carries an invitation puts in another broker or authority",
        "src/silograph/party/enrolment.py",
        'verify(read_key(fields["key"]), _signed(form, fields), bytes.fromhex(signature), who="it")',
        'read_key(fields["key"])',
        _FILES,
    ),
    Bug(
        "enrolment: an invitation for ever",
        "an old invitation is answered years later",
        "src/silograph/party/enrolment.py",
        "if today > self.expires:",
        "if today < self.expires and False:",
        _FILES,
    ),
    Bug(
        "enrolment: anybody's invitation",
        "an answer to another coordinator is admitted",
        "src/silograph/party/enrolment.py",
        "if found.coordinator.public != identity.public or found.consortium != consortium:",
        "if found.consortium != consortium:",
        _FILES,
    ),
    Bug(
        "enrolment: terms of the coordinator",
        "an invitation makes a silo's policy as generous as it likes",
        "src/silograph/party/joining.py",
        "return float(min(suggested, default) if chosen is None else chosen)",
        "return float(suggested if chosen is None else chosen)",
        _FLOW,
    ),
    Bug(
        "enrolment: the TLS key goes along",
        "the coordinator gets a silo's private key",
        "src/silograph/party/joining.py",
        "answer = Answer(member, request, content)",
        "answer = Answer(member, request + key, content)",
        _FLOW + " -k secrets",
    ),
    Bug(
        "enrolment: anybody's welcome",
        "a stranger gives a silo a roster and a certificate",
        "src/silograph/party/joining.py",
        """    if (welcome.consortium, welcome.key) != (
        invitation.consortium,
        invitation.coordinator.public,
    ):""",
        "    if welcome.consortium != invitation.consortium:",
        _FLOW,
    ),
    Bug(
        "enrolment: our own key is not looked for",
        "a silo signs a roster in which it has another role",
        "src/silograph/party/joining.py",
        "if roster.place(identity.public) != config.name or roles[config.name] != config.role:",
        "if roster.place(identity.public) != config.name:",
        _FLOW,
    ),
    Bug(
        "enrolment: a roster replaces any other",
        "a party disappears without its key being revoked",
        "src/silograph/party/joining.py",
        "            roster.check_follows(old)\n",
        "            pass\n",
        _FLOW,
    ),
    Bug(
        "enrolment: requests for any name",
        "a party gets a certificate in the name of another",
        "src/silograph/party/certificates.py",
        "    if subject != _name(x509, name):\n        said = subject.rfc4514_string()\n        raise CertificateError(f\"{name}: the request",
        "    if not subject:\n        said = subject.rfc4514_string()\n        raise CertificateError(f\"{name}: the request",
        _FLOW,
    ),
    Bug(
        "enrolment: a roster in force before all have signed",
        "a service that is started again has no roster",
        "src/silograph/party/enrolment.py",
        "    if roster.missing:\n        write_roster(folder / NEXT, roster)\n        return folder / NEXT\n",
        "",
        _FLOW,
    ),
    Bug(
        "enrolment: half a batch",
        "parties are in the roster although another answer was refused",
        "src/silograph/nats/consortium.py",
        "            roster = _with(roster, answer, invitation.role, renew)\n",
        "            roster = _with(roster, answer, invitation.role, renew)\n"
        "            keep_roster(desk.folder, roster)\n",
        _FLOW + " -k all_or_none",
    ),
    Bug(
        "enrolment: nobody is asked for the words",
        "a roster is signed that people have not compared",
        "src/silograph/cli/enrol.py",
        'typer.confirm("Do the other parties read out the same words?", abort=True, err=True)',
        'typer.echo("Do the other parties read out the same words?")',
        _COMMANDS + " -k words",
    ),
    Bug(
        "enrolment: the first words will do",
        "words of another roster are taken",
        "src/silograph/cli/enrol.py",
        "elif tuple(words.lower().split()) != roster_words(roster.digest):",
        "elif tuple(words.lower().split())[:11] != roster_words(roster.digest)[:11]:",
        _COMMANDS + " -k words",
    ),
    Bug(
        "operations: an alert on a metric that is not there",
        "nobody is told that the broker is lost",
        "deploy/alerts.yml",
        "expr: silograph_broker_connected == 0",
        "expr: silograph_broker_up == 0",
        _ALERTS + " -k alert",
    ),
]  # fmt: skip
