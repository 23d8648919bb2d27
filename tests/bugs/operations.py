"""Bugs in what a deployment rests on: identities, rosters, the broker, the ledger's chain, logs."""

from bugs.bug import Bug

__all__ = ["BUGS"]

_RUNTIME = "src/silograph/runtime/"

_KEYS = "pytest tests/runtime/test_keys.py"
_FILES = "pytest tests/runtime/test_whole_files.py"
_ROSTER = "pytest tests/runtime/test_roster_file.py"
_CERTS = "pytest tests/runtime/test_certs.py"
_BROKER = "pytest tests/runtime/test_broker_files.py"
_BACKUP = "pytest tests/runtime/test_ledger_backup.py"
_JOURNAL = "pytest tests/runtime/test_journal.py"
_METRICS = "pytest tests/runtime/test_metrics.py"
_COMMANDS = "pytest tests/cli/test_operations.py"

_LEDGER = "pytest tests/runtime/test_ledger.py"

BUGS = [
    Bug(
        "operations: what a larger coalition sees counts",
        "in baseline and feat+ the coordinator alone sees more than the ledger says",
        _RUNTIME + "ledger_entries.py",
        "(level, worst_losses(losses)[level])",
        "(level, losses[level])",
        _LEDGER + " -k TestCoalitions",
    ),
    Bug(
        "operations: losses recorded as they are given",
        "two runs of baseline pass a limit that is for one",
        _RUNTIME + "ledger_entries.py",
        "MappingProxyType(worst_losses(self.losses))",
        "MappingProxyType(dict(sorted(self.losses.items())))",
        _LEDGER + " -k TestCoalitions",
    ),
    Bug(
        "operations: totals of old rows as they stand",
        "what an old ledger holds is read as if larger coalitions saw more",
        _RUNTIME + "ledger_reading.py",
        "WHERE spend = number AND collusion <=",
        "WHERE spend = number AND collusion =",
        _LEDGER + " -k TestCoalitions",
    ),
    Bug(
        "operations: a slip in a lineage",
        "a dataset under another name has no limit",
        _RUNTIME + "ledger.py",
        "if not new_lineage and reading.is_new(connection, lineage):",
        "if not new_lineage and not lineage:",
        _LEDGER + " -k TestNewLineages",
    ),
    Bug(
        "operations: judging that raises",
        "one proposal stops a silo for good",
        _RUNTIME + "nats/silo.py",
        "except Exception as error:  # what cannot be judged is refused",
        "except KeyError as error:  # what cannot be judged is refused",
        "pytest tests/runtime/nats/test_proposals.py",
    ),
    Bug(
        "operations: an approval that is not judged",
        "an operator's word lets in what the policy refuses",
        _RUNTIME + "nats/silo.py",
        """                try:
                    self._check(study)
                except Exception as error:
                    self._refuse(study, code_of(error), "policy", error)
                    return
                self._accept""",
        "                self._accept",
        "pytest tests/runtime/nats/test_proposals.py -k operator",
    ),
    Bug(
        "operations: a channel for anybody",
        "a short text in a proposal is a computation without an end",
        "src/silograph/methods/plans.py",
        """    if study.protocol != "clear":
""",
        """    if study.protocol == "clear":
""",
        "pytest tests/methods/test_study.py -k cannot_be_done",
    ),
    Bug(
        "operations: a stored proposal that raises",
        "a service cannot start again",
        _RUNTIME + "nats/silo.py",
        """            study = open_proposal(run.proposal, self._party.roster)
        except Exception as error:""",
        """            study = open_proposal(run.proposal, self._party.roster)
        except KeyError as error:""",
        "pytest tests/runtime/nats/test_proposals.py",
    ),
    Bug(
        "operations: a study without bounds",
        "numbers that nobody can compute with are planned",
        "src/silograph/methods/study.py",
        "                check(value)\n",
        "                pass\n",
        "pytest tests/methods/test_study.py -k out_of_bounds",
    ),
    Bug(
        "operations: work that grows with the noise",
        "a wide noise costs every silo seconds to judge",
        "src/silograph/privacy/laplace.py",
        "_MOST_SUMMED = 150_000",
        "_MOST_SUMMED = 30_000_000",
        "pytest tests/methods/test_study.py -k bounded",
    ),
    Bug(
        "operations: a bound that leaves out a ratio",
        "the loss of a large coalition is certified too small",
        "src/silograph/privacy/laplace.py",
        "max(shift + 1, steps)",
        "max(shift, steps)",
        "pytest tests/privacy/test_laplace.py -k fewer_steps",
    ),
    Bug(
        "operations: a key that others can read",
        "a secret that is on view is used as if it were one",
        _RUNTIME + "whole_files.py",
        "if private and found.st_mode & 0o077:",
        "if private and found.st_mode & 0o007:",
        _FILES,
    ),
    Bug(
        "operations: files are overwritten",
        "a second 'keys new' destroys the identity that others have signed",
        _RUNTIME + "whole_files.py",
        "os.link(name, path)",
        "os.rename(name, path)",
        _KEYS,
    ),
    Bug(
        "operations: a seal without its context",
        "the public key and the date of a sealed file can be changed unseen",
        _RUNTIME + "keys.py",
        'return pack(b"silograph/identity", version, public, created.encode())',
        'return pack(b"silograph/identity", version)',
        _KEYS,
    ),
    Bug(
        "operations: any secret will do",
        "a file's secret need not belong to its public key",
        _RUNTIME + "keys.py",
        "if identity.public != shown.public:",
        "if not identity.public:",
        _KEYS,
    ),
    Bug(
        "operations: revocations are not signed",
        "someone between the parties drops a revocation and no signature breaks",
        _RUNTIME + "rosters.py",
        "return hashlib.sha256(pack(*head, self.roster.digest, *gone)).digest()",
        "return hashlib.sha256(pack(*head, self.roster.digest)).digest()",
        _ROSTER + " -k not golden",
    ),
    Bug(
        "operations: a revoked key is taken",
        "who has stolen a key goes on being a party",
        _RUNTIME + "rosters.py",
        "if member.public in gone:",
        "if member.name in gone:",
        _ROSTER,
    ),
    Bug(
        "operations: a new key moves a party to another organisation",
        "four members of a committee seem to be of four organisations",
        _RUNTIME + "rosters.py",
        "return self._replaced(old, new_member(name, key, old.organisation), gone=gone)",
        "return self._replaced(old, new_member(name, key), gone=gone)",
        _ROSTER,
    ),
    Bug(
        "operations: a helper comes back from its file as a silo",
        "a party without edges counts among those who hide each other's noise",
        _RUNTIME + "roster_file.py",
        'role = check_role(fields.pop("role"))',
        'role = check_role(fields.pop("role") and "silo")',
        _ROSTER,
    ),
    Bug(
        "operations: signatures are kept over a change",
        "everyone seems to have agreed to what nobody has seen",
        _RUNTIME + "rosters.py",
        "draft = not self.signatures",
        "draft = True",
        _ROSTER,
    ),
    Bug(
        "operations: strangers sign",
        "a roster lists signatures of people who are not in it",
        _RUNTIME + "rosters.py",
        "if name not in keys:\n                raise RosterError(f\"signed by",
        "if name not in keys:\n                continue\n            if name == '':\n                raise RosterError(f\"signed by",
        _ROSTER,
    ),
    Bug(
        "operations: an old roster is in force again",
        "a rolled-back file brings a revoked key back",
        _RUNTIME + "rosters.py",
        "if self.serial <= serial:",
        "if self.serial < 0:",
        _ROSTER,
    ),
    Bug(
        "operations: TLS as the server likes it",
        "a client goes on in the clear if whoever answers says so",
        _RUNTIME + "broker.py",
        'options["tls_handshake_first"] = not self.websocket',
        'options["tls_handshake_first"] = False',
        _BROKER + " -k fall_back",
    ),
    Bug(
        "operations: clients without certificates",
        "the server asks nobody who they are",
        _RUNTIME + "broker_files.py",
        '"  verify_and_map: true",',
        '"  verify: false",',
        _BROKER,
    ),
    Bug(
        "operations: everyone publishes as anyone",
        "permissions that fit every sender",
        _RUNTIME + "subjects.py",
        'return f"{PREFIX}.*.{sender}.>"',
        'return f"{PREFIX}.>"',
        _BROKER,
    ),
    Bug(
        "operations: a party's certificate serves",
        "any party can pretend to be the broker",
        _RUNTIME + "certs.py",
        "if alternatives:\n        uses.insert(0, x509.oid.ExtendedKeyUsageOID.SERVER_AUTH)",
        "uses.insert(0, x509.oid.ExtendedKeyUsageOID.SERVER_AUTH)\n    if alternatives:",
        _CERTS,
    ),
    Bug(
        "operations: a chain over limits alone",
        "what was spent can be changed in the file",
        _RUNTIME + "ledger_chain.py",
        "if _linked(before, found, kind, content) != digest:",
        'if kind == "limit" and _linked(before, found, kind, content) != digest:',
        _BACKUP,
    ),
    Bug(
        "operations: losses are not chained",
        "an epsilon can be changed in the file",
        _RUNTIME + "ledger_chain.py",
        "own.append([ahead[1], ahead[2]])",
        "own.append([ahead[1], 0.0])",
        _BACKUP,
    ),
    Bug(
        "operations: a chain that is not followed to its end",
        "rows that were slipped in after the last entry",
        _RUNTIME + "ledger_chain.py",
        "if any(next(left, None) is not None for left in rows.values()):",
        "if False:",
        _BACKUP,
    ),
    Bug(
        "operations: any ledger will do",
        "a rolled-back ledger whose serials have caught up is taken",
        _RUNTIME + "ledger_chain.py",
        "if row is not None and row[0] == seen.digest:",
        "if row is not None:",
        _BACKUP,
    ),
    Bug(
        "operations: a restored ledger forgets",
        "what is not said to be lost is free again",
        _RUNTIME + "ledger_backup.py",
        "epsilon, delta = amounts.get(lineage, (math.inf, 1.0))",
        "epsilon, delta = amounts.get(lineage, (0.0, 0.0))",
        _BACKUP,
    ),
    Bug(
        "operations: a backup is a ledger",
        "a copy is spent on as if it were the ledger",
        _RUNTIME + "ledger_backup.py",
        "copy.execute(f\"PRAGMA application_id = {ledger_file.BACKUP_ID}\")",
        "copy.execute(f\"PRAGMA application_id = {ledger_file.APPLICATION_ID}\")",
        _BACKUP,
    ),
    Bug(
        "operations: complete, whatever was seen",
        "an operator's mistake gives the budget back",
        _RUNTIME + "ledger_backup.py",
        "elif complete:",
        "elif False:",
        _BACKUP,
    ),
    Bug(
        "operations: serials repeat after a restoration",
        "witnesses of the lost ledger fit the restored one",
        _RUNTIME + "ledger_writing.py",
        "serial = max(base, last or 0) + 1",
        "serial = base + 1",
        _BACKUP,
    ),
    Bug(
        "operations: old programs write on",
        "rows without a link, by a program that knows no chain",
        _RUNTIME + "ledger_file.py",
        "*_guards(*_KEPT_SINCE_2), *_links()):",
        "*_guards(*_KEPT_SINCE_2)):",
        _BACKUP,
    ),
    Bug(
        "operations: every field is written",
        "secrets and edges reach the log by accident",
        _RUNTIME + "journal_fields.py",
        "check = FIELDS.get(name)\n        if check is None:",
        "check = FIELDS.get(name, _text)\n        if check is None:",
        _JOURNAL,
    ),
    Bug(
        "operations: errors are told in full",
        "an error's text with an edge in it reaches the log",
        _RUNTIME + "journal_fields.py",
        "if not isinstance(error, _TOLD):",
        "if not isinstance(error, Exception):",
        _JOURNAL,
    ),
    Bug(
        "operations: lines are hashed alone",
        "a line can be removed and the rest numbered anew",
        _RUNTIME + "journal.py",
        'pack(b"silograph/journal/v1", before.encode(), body)',
        'pack(b"silograph/journal/v1", b"", body)',
        _JOURNAL,
    ),
    Bug(
        "operations: files are not joined",
        "a whole file of the trail disappears unseen",
        _RUNTIME + "journal_reading.py",
        "if previous != last.chain:",
        "if previous == NOTHING:",
        _JOURNAL,
    ),
    Bug(
        "operations: a trail that may be lost",
        "what left the house is told from a page cache",
        _RUNTIME + "journal.py",
        "keep=None, durable=True, clock=clock",
        "keep=None, durable=False, clock=clock",
        _JOURNAL,
    ),
    Bug(
        "operations: metrics for everyone",
        "budgets are served to the network",
        _RUNTIME + "metrics.py",
        "if host not in _LOOPBACK:",
        "if host in _LOOPBACK and port < 0:",
        _METRICS,
    ),
    Bug(
        "operations: nobody is asked",
        "a roster is signed without comparing its digest",
        "src/silograph/cli/roster.py",
        'typer.confirm("Have you compared this digest with the others?", abort=True, err=True)',
        'typer.echo("Have you compared this digest with the others?")',
        _COMMANDS,
    ),
]  # fmt: skip
