"""`claude -p` with the options of a summary: the answer is in budget and leaves out user notes."""

import json

from hivepipe.costs.price_table import prices_in_force
from hivepipe.summaries.asker import claude_arguments
from hivepipe.summaries.providers import PROVIDERS, Offer
from hivepipe.summaries.question import Question, question_of
from hivepipe.summaries.terms import budget_usd
from tests.outcome import outcome_of
from tests.real.environment import client_environment, needs_claude
from tests.real.person import Person
from tests.real.script import Call, Script

pytestmark = needs_claude

(CLAUDE,) = (provider for provider in PROVIDERS if provider.kind == "claude")
ANSWER = {"summary": "A numbat.", "key_learnings": [], "files": [], "open_ends": []}
SUMMARY = Script("summary", [[Call("StructuredOutput", ANSWER)]])


def arguments(question: Question) -> list[str]:
    offer = Offer(CLAUDE, "", "", CLAUDE.model, "", "")
    dollars = budget_usd(offer, prices_in_force("/nonexistent"), question)
    request = {"model": CLAUDE.model, "schema": question.schema, "dollars": dollars}
    return claude_arguments(request)


def asked(person: Person, words: list[str], question: Question) -> dict[str, object]:
    done = outcome_of(
        [str(person.claude), *words],
        person.env,
        "/",
        input=f"{question.instructions}\n{question.text}",
    )
    assert done.stdout, done.stderr
    report: dict[str, object] = json.loads(done.stdout)
    return report


def test_an_answer_is_within_the_budget_and_the_users_notes_stay_out() -> None:
    question = question_of(SUMMARY.prompt("Look at the parser"))
    with client_environment(SUMMARY, init=()) as person:
        folder = person.home / ".claude"
        folder.mkdir(exist_ok=True)
        (folder / "CLAUDE.md").write_text("Always mention the wombat.\n")
        report = asked(person, arguments(question), question)
        assert (report["subtype"], report["structured_output"]) == ("success", ANSWER)
        assert "wombat" not in sent(person)

        words = arguments(question)
        at = words.index("--setting-sources")
        asked(person, words[:at] + words[at + 2 :], question)
        assert "wombat" in sent(person)  # without that option the notes are sent


def sent(person: Person) -> str:
    return json.dumps([request.body for request in person.api.requests])
