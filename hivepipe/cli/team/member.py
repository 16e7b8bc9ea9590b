"""Commands of a member: `team join`, `leave`, `status`, `policy`."""

import socket
import sys
from typing import Any

import click

from hivepipe.cli.parameters import Choice
from hivepipe.cli.tables import as_json, json_option, show_json, show_table
from hivepipe.cli.team.administrators import admin_option, administrator
from hivepipe.cli.team.deleted_lines import show_deleted
from hivepipe.cli.team.uplink_lines import show_uplink
from hivepipe.cli.terminal import ask_secret, confirm_or_end, say, short, yes_option
from hivepipe.errors import TeamError, TeamRefusedError
from hivepipe.home import default_home, locate
from hivepipe.reading.homes import settings_of
from hivepipe.stack.project_records import records
from hivepipe.summaries.providers import credentials_path, read_credentials
from hivepipe.team import address, capture, invites, membership
from hivepipe.team.archives import leftovers
from hivepipe.team.connection import connected, one
from hivepipe.team.invites import Joined
from hivepipe.team.membership import Membership
from hivepipe.team.policy import DEFAULT, LEVELS, OTHERS, Policies, level_named, level_of
from hivepipe.team.uplink_status import uplink_report
from hivepipe.text.plurals import counted

_SHARES = {
    "nothing": "only the keys of deleted rows: ids and months; for costs also the model and the "
    "times",
    "metadata": "ids, times, states, counts, tokens, names of projects, models, tools, skills, "
    "commands, clients and types of agents",
    "prompts": "the same, and prompts, titles, summaries, arguments of skills and commands, "
    "names and errors of agents",
    "everything": "the same, and log lines and archived transcripts",
}


@click.command()
@click.argument("code", metavar="[CODE|URL]", required=False)
@click.option("--share", type=Choice(LEVELS), help="Share at most this much of any project.")
@click.option("--machine", metavar="NAME", help="The machine's name; the host's by default.")
@yes_option
def join(code: str | None, share: str | None, machine: str | None) -> None:
    """Send what this machine records to a team.

    CODE is the invite that `hivepipe team invite` prints, URL the address with a machine's login.
    Without an argument, either is read from HIVEPIPE_TEAM or from stdin.
    """
    if known := membership.known():
        raise TeamError(f"joined already, as {known.member}: `hivepipe team leave`")
    given = code or membership.of_environment() or ask_secret("invite").strip()
    if not given:
        raise click.UsageError(
            "an invite is required: as an argument, on stdin or in HIVEPIPE_TEAM"
        )
    if not invites.is_code(given) and "://" not in given:
        raise TeamError(
            "this is neither an invite of `hivepipe team invite` nor the address of a machine's "
            "login, postgresql://HOST/DATABASE"
        )
    read_credentials()  # an unreadable file fails before the invite is used up
    if invites.is_code(given):
        joined, policies = _by_invite(given, share, machine)
    else:
        joined, policies = _by_url(given, share)
    level = share or level_of(OTHERS, policies)
    kept = Membership(joined.member, joined.machine, joined.writes.shown, {OTHERS: level})
    membership.keep(kept, joined.writes, joined.reads if joined.reads != joined.writes else None)
    say(f"joined as {joined.member}, machine {joined.machine}")
    say(f"the secret is in {short(str(credentials_path()))} (0600)")
    say("the uplink of a running stack starts within seconds; see `hivepipe team status`")


def _by_invite(code: str, share: str | None, machine: str | None) -> tuple[Joined, Policies]:
    invited = invites.read_code(code)
    with connected(invited) as connection:
        terms = invites.terms(connection)
        _show_terms(invited.shown, terms, share)
        confirm_or_end("Join?")
        joined = invites.join(connection, invited, machine or socket.gethostname())
    return joined, terms["policies"]


def _by_url(url: str, share: str | None) -> tuple[Joined, Policies]:
    found = address.parse(url)
    if not found.secret:
        raise TeamError("this URL has no secret: it is not the address of a machine's own login")
    with connected(found) as connection:
        terms: dict[str, Any] = one(connection, "SELECT hivepipe.terms_of_machine()")
    _show_terms(found.shown, terms, share)
    confirm_or_end("Join?")
    return Joined(terms["member"], terms["machine"], found, found), terms["policies"]


def _show_terms(server: str, terms: dict[str, Any], share: str | None) -> None:
    """Show what will be sent, where to, and who reads it."""
    say(f"team      {server}")
    say(f"member    {terms['member']}" + (f", of {terms['team']}" if terms["team"] else ""))
    others = counted(terms["readers"], "other member")
    say(f"readers   you, {others}, and the server's administrators")
    _show_policies(terms["policies"])
    if share:
        say(f"you share at most: {share}")
    say("sent      what hivepipe has recorded on this machine and records from now on, redacted")


def _show_policies(policies: Policies) -> None:
    for pattern, level in sorted({OTHERS: DEFAULT, **policies}.items()):
        projects = "all other projects" if pattern == OTHERS else pattern
        say(f"the team shares of {projects}: {level}: {_SHARES[level]}")


@click.command()
@click.option("--purge", is_flag=True, help="Delete what this machine sent.")
@yes_option
def leave(purge: bool) -> None:
    """End the membership of this machine.

    The machine's logins end, and changes are no longer captured. What it sent stays, unless
    --purge.
    """
    try:
        known = membership.read()
    except TeamError:
        if not membership.is_joined():
            raise
        known = Membership(machine="this machine", server="the team")  # a damaged file
    if purge:
        confirm_or_end(f"Delete all that {known.machine} sent to {known.server}?")
    try:
        with connected(membership.machine_address()) as connection:
            objects = leftovers.purge(connection) if purge else {}
            places = one(connection, "SELECT hivepipe.leave(%s)", purge) | objects
    except TeamError as error:
        if purge:
            raise TeamError(
                f"nothing is deleted, and the machine is still a member: {error}"
            ) from None
        places = {}
        say(f"the server was not told: {error}", err=True)
    membership.remove()
    for home in {default_home(), *(record["home"] for record in records())}:
        with settings_of(home):
            capture.stop(home)
    show_deleted(places or {})
    say(f"left {known.server}")


@click.command()
@json_option
def status() -> None:
    """Show the team, the uplink and its lag.

    Exits with 1 if the server refuses this machine."""
    report = uplink_report(locate(".").home)
    if report and report["state"] == "resting" and (error := _refusal()):
        report |= {"state": "refused", "error": error}
    if not show_json(team=report):
        if report:
            show_uplink(report)
        else:
            say("no team is joined: `hivepipe team join`")
    sys.exit(1 if report and report["state"] == "refused" else 0)


def _refusal() -> str:
    """Return why the server refuses this machine, which an uplink at rest does not know, or ""."""
    try:
        with connected(membership.machine_address()):
            return ""
    except TeamRefusedError as error:
        return str(error)
    except TeamError:
        return ""


@click.command()
@click.argument("project", required=False)
@click.argument("level", type=Choice((*LEVELS, "default")), required=False)
@click.option("--team", "of_team", is_flag=True, help="Set the team's policy, as administrator.")
@admin_option
@json_option
def policy(project: str | None, level: str | None, of_team: bool) -> None:
    """Show or set what is shared of a project.

    PROJECT is host/path of its git remote, else its folder's name, or a pattern such as
    'github.com/acme/*'; '*' means all others. The stricter of your level and the team's applies.
    """
    if project and not level:
        raise click.UsageError("a level is required")
    if of_team:
        _teams_policy(project, level)
        return
    chosen = None if level in (None, "default") else level_named(str(level))
    known = membership.share_at_most(project, chosen) if project else membership.read()
    if show_json(share=dict(known.share)):
        return
    if project:
        say("stored; the uplink applies it within seconds")
    else:
        show_table(("project", "you share at most"), sorted(known.share.items()))


def _teams_policy(project: str | None, level: str | None) -> None:
    with administrator() as connection:
        if project:
            word = None if level == "default" else level
            gone = one(connection, "SELECT hivepipe.set_policy(%s, %s)", project, word)
            for place, number in sorted((gone or {}).items()):
                say(f"removed: {place}: {counted(number, 'row')}", err=as_json())
        policies = one(connection, "SELECT hivepipe.team_policies()")
    if not show_json(policies=policies) and not project:
        show_table(("project", "the team shares"), sorted({OTHERS: DEFAULT, **policies}.items()))
