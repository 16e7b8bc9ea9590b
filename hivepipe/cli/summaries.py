"""Command `summaries`: session summaries, and the consent to a language model."""

import json
from dataclasses import replace
from functools import partial
from typing import Any

import click

from hivepipe.cli.here import store_here
from hivepipe.cli.parameters import given
from hivepipe.cli.tables import (
    Column,
    as_json,
    json_option,
    output_options,
    printable,
    show_entries,
    show_entry,
    show_json,
)
from hivepipe.cli.terminal import confirm, say, say_json, say_text, yes_option
from hivepipe.config.config_file import unseen
from hivepipe.config.setting_table import files
from hivepipe.costs.price_table import prices_in_force
from hivepipe.costs.tokens import Tokens
from hivepipe.db import summaries as stored
from hivepipe.db.database import opened
from hivepipe.db.memory_ratings import record_retrieval
from hivepipe.errors import SummaryError, os_error_as
from hivepipe.events.claude_code import valid_id
from hivepipe.files.regular_file import ANY_SIZE, read_given
from hivepipe.home import locate
from hivepipe.jobs.summary import RecordSummary
from hivepipe.operations.slow import at_once, manual_origin
from hivepipe.operations.summaries import keep_summary, rate_memories, summary_input_of
from hivepipe.operations.summariser import Summariser, SummaryInput
from hivepipe.reading.session_lookup import session_named
from hivepipe.redact import redact_text
from hivepipe.settings import environment, switched_on
from hivepipe.summaries import terms
from hivepipe.summaries.consent import give_consent, is_enabled, withdraw_consent
from hivepipe.summaries.excerpt import LIMIT_BYTES, Excerpt, last_bytes
from hivepipe.summaries.providers import SETTABLE, Offer, find_offer
from hivepipe.summaries.question import Memory, Question, question_of
from hivepipe.times import now

WORDS_SHOWN = 100
_NO_MODEL = "metadata"  # source of a summary without a model


@click.group()
def summaries() -> None:
    """Show session summaries, and choose whether a language model writes them."""


@summaries.command()
@yes_option
def enable() -> None:
    """Let a language model write summaries.

    Shows what is sent, to whom and at what price, and asks. Applies to this home.
    """
    home = locate(".").home
    for note in unseen(home):
        say(f"note: {note}", err=True)
    offer = find_offer(with_environment=False)
    if offer is None:
        raise SummaryError(_no_credential())
    refused = offer.trouble or terms.trouble()
    if refused:
        raise SummaryError(refused)
    for line in _terms(home, offer):
        say(line)
    if not given("yes") and not confirm("Agreed?"):
        raise SummaryError("language models stay off")
    give_consent(home, offer, now()[0])
    say("enabled; `hivepipe summaries disable` revokes it at once")


def _no_credential() -> str:
    in_shell = [name for name in SETTABLE if environment(name)]
    if in_shell:
        name = in_shell[0]
        return (
            f"{name} is set in this shell, which the stack does not see: "
            f"`hivepipe credentials set {name} --from-environment`"
        )
    return f"there is no credential: `hivepipe credentials set {SETTABLE[0]}`, or another key"


def _terms(home: str, offer: Offer) -> list[str]:
    usual = terms.usual_tokens(LIMIT_BYTES)
    caps = terms.caps()
    each = _dollars(home, offer, usual)
    sent = (
        f"the last {LIMIT_BYTES // 1000} kB of each session's redacted transcript, once, when it "
        "has ended:"
    )
    a_day = f"{caps.calls} calls, {caps.tokens:,} tokens, {caps.dollars:.2f} USD"
    lines = (
        ("sent", sent),
        ("", "what you and Claude said, tool calls, the beginning of their answers"),
        ("to", f"{offer.receiver} ({offer.url or 'claude'}){_unencrypted(offer)}"),
        ("with", f"{offer.name}, from {offer.source}"),
        ("model", offer.model),
        ("price", f"about {each} a session ({usual.prompt:,} tokens in, {usual.output:,} out)"),
        ("a day", f"at most {a_day}, for all your projects together; then without a model"),
    )
    return [f"{name:<9} {text}" for name, text in lines]


def _unencrypted(offer: Offer) -> str:
    is_readable = offer.url.startswith("http:") and not offer.is_local
    return ", NOT ENCRYPTED on the way" if is_readable else ""


def _dollars(home: str, offer: Offer, tokens: Tokens) -> str:
    cost = terms.price(offer, prices_in_force(home), tokens)
    if cost is None:
        raise SummaryError(f"no price of {offer.model} is known: add it to prices.toml")
    return f"{cost:.4f} USD"


@summaries.command()
def disable() -> None:
    """Stop using a language model; summaries are made of metadata."""
    home = locate(".").home
    withdraw_consent(home)
    if is_enabled(home, with_environment=False):
        raise SummaryError(f"still on for all projects: delete `summaries` in {files(home)[0]}")
    say("disabled: nothing is sent")


@summaries.command(name="list")
@output_options
def list_summaries() -> None:
    """List the newest summary of each session, newest first."""
    with store_here() as store:
        found = stored.list_summaries(store)
    columns: dict[str, Column] = {
        "session": "session_id",
        "made": "made_at",
        "by": _by,
        "summary": lambda entry: " ".join(entry["summary"].split())[:WORDS_SHOWN],
    }
    show_entries("summaries", found, columns)


def _by(entry: dict[str, Any]) -> str:
    if entry["provider"] == stored.COMPACTION:
        return "Claude Code"
    return entry["model"] if entry["kind"] == stored.LLM else _NO_MODEL


@summaries.command()
@click.argument("session", metavar="SESSION")
@output_options
def show(session: str) -> None:
    """Show the newest summary of a session; SESSION may be a prefix."""
    with store_here() as store:
        found = stored.list_summaries(store, store.full_id("session with a summary", session))
    if show_json(summaries=found):
        return
    entry = found[0]
    shown = {
        "session": entry["session_id"],
        "made_at": entry["made_at"],
        "by": _by(entry) + (f" ({entry['provider']})" if entry["provider"] else ""),
        "why plain": entry["reason"],
        "cost": "" if entry["cost_usd"] is None else f"{entry['cost_usd']:.6f} USD",
    }
    show_entry(shown)
    say()
    say_text(entry["summary"])
    for title in ("key_learnings", "files", "open_ends"):
        if entry[title]:
            say()
            say(title.replace("_", " "))
            for line in entry[title]:
                say(f"  {line}")


@summaries.command()
@click.argument("session", metavar="SESSION")
@click.option("--dry-run", is_flag=True, help="Print the exact request; send nothing.")
@click.option(
    "--file",
    "file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Summarise this text of another program instead of an archived session.",
)
@click.option(
    "--harness", metavar="NAME", default="other", help="Name of the program that wrote FILE."
)
@click.option(
    "--memories",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Memories that the session was shown: JSON lines with name and text.",
)
@json_option
def run(session: str, dry_run: bool, file: str | None, harness: str, memories: str | None) -> None:
    """Summarise a session now, even if it has a summary."""
    home = locate(".").home
    summary_input = _of_file(session, file, harness) if file else _of_archive(home, session)
    brought = _memories(memories) if memories else []
    if brought and switched_on("HIVEPIPE_MEMORY_RATING"):
        summary_input = summary_input._replace(memories=(*summary_input.memories, *brought))
    if dry_run:
        _show_request(home, question_of(summary_input.excerpt.text, summary_input.memories))
        return
    if not is_enabled(home) and not as_json():  # JSON contains the reason
        say("language models are off (`hivepipe summaries enable`): the summary is from metadata")
    with at_once(home) as context:
        origin = replace(
            manual_origin("summarise_session"),
            session=summary_input.session,
            project=locate(".").project,
        )
        keep = partial(keep_summary, context, origin)
        made = Summariser(home, keep, is_asked=True).summarise(summary_input)
    _record_retrievals(home, summary_input.session, brought)
    problem = rate_memories(home, summary_input.session, made)
    if not show_json(session=summary_input.session, **made.row(), useful=made.useful):
        _show_result(made)
    if problem:
        say(f"the memory server did not accept the ratings: {problem}", err=True)


def _show_result(made: RecordSummary) -> None:
    say(f"{made.model or _NO_MODEL}{f' ({made.reason})' if made.reason else ''}")
    say_text(made.summary)
    for name, useful in sorted((made.useful or {}).items()):
        say(f"{name}: {'useful' if useful else 'not useful'}")


def _memories(file: str) -> list[Memory]:
    try:
        lines = read_given(file).decode().splitlines()
        entries = [json.loads(line) for line in lines if line.strip()]
        return [Memory(str(one["name"]), redact_text(str(one["text"]))) for one in entries]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise SummaryError(f"{file} is not a list of memories: {error!r}") from error


def _record_retrievals(home: str, session: str, memories: list[Memory]) -> None:
    at, _ = now()
    with opened(home) as db, db.transaction():
        for memory in memories:
            record_retrieval(db, session, memory.name, memory.text, at)


def _of_archive(home: str, session: str) -> SummaryInput:
    found = session_named(home, session)
    summary_input = summary_input_of(home, found)
    if summary_input is None:
        raise SummaryError(f"session {found} has no archive")
    return summary_input


def _of_file(session: str, file: str, harness: str) -> SummaryInput:
    named = valid_id(session)
    if not named:
        raise SummaryError(f"{session!r} is not a valid session id")
    with os_error_as(SummaryError, f"{file} cannot be read"):
        text = read_given(file, ANY_SIZE)[-4 * LIMIT_BYTES :].decode("utf-8", "replace")
    clean = last_bytes(redact_text(text))
    return SummaryInput(named, Excerpt(clean, len(clean.splitlines())), {}, printable(harness)[:60])


def _show_request(home: str, question: Question) -> None:
    offer = find_offer()
    if offer is None:
        raise SummaryError(_no_credential())
    request = {
        "to": offer.url or "claude -p",
        "credential": f"{offer.name}, from {offer.source}; not shown",
        "model": offer.model,
        "price": f"about {_dollars(home, offer, terms.usual_tokens(question.size_bytes))}",
        "instructions": question.instructions,
        "text": question.text,
        "schema": question.schema,
    }
    say_json(request, indent=2, readable=True)
