"""Find the memories for a prompt that share the most significant words with the prompt.

    <home>/recall/<part>.txt      written by hivepipe.operations.recall; parts: all (the user's
                                  folders), swarm-<hash>, profile-<id>
        #<number> {"id": ..., "path": ..., "text": ...}
        <word> <number>:<weight> <number>:<weight> ...
    <home>/recall/told-<hash of the session>    ids of memories shown since its last start
    <home>/recall/wanted          touched when a session starts with `memory_recall` on

No database is opened. The lines are sorted, so a word is found by binary search. Hooks import this
module with a prompt, if `memory_recall` is on.
"""

import posix

from hivepipe.events.claude_code import Event, UserPromptSubmit, parse_object
from hivepipe.events.job_plan import Context
from hivepipe.home import open_or_make, read_small, short_hash
from hivepipe.hook.instance import overwrite_small

PART_BYTES = 1 << 20
MOST_MEMORIES = 5
FEWEST_WORDS = 2  # words that a memory must share with a prompt; a long prompt requires more
WORDS_PER_MORE = 25
MOST_PROMPT_CHARS = 8_000
RECALLED_BYTES = 1 << 16
MOST_PATH_CHARS = 400
MOST_MEMORY_CHARS = 900

_MARKS = (
    "!\"#$%&'()*+,-./:;<=>?@[\\]^`{|}~"
    "\u2018\u2019\u201c\u201d\u201e\u2013\u2014\u2026\u00ab\u00bb\u00b7\u2022"
)
_SPACES = str.maketrans(_MARKS, " " * len(_MARKS))


class Memory:
    """One memory for a prompt."""

    __slots__ = ("id", "path", "score", "text")

    def __init__(self, id: str, path: str, text: str, score: int) -> None:
        """`id` is the id of the file, `text` the best matching passage."""
        self.id = id
        self.path = path
        self.text = text
        self.score = score


def recalled_text(event: Event, home: str, context: Context) -> str:
    """Return the memories that match a prompt as text; also store them in the context.

    For another event, forget which memories were shown to the session, and return "".
    """
    if not isinstance(event, UserPromptSubmit):
        forget_shown(home, context.own_session)
        return ""
    if not event.is_users:
        return ""
    try:
        found = recall(home, context, event.whole_prompt)
    except ValueError:  # hivepipe did not write this file
        return ""
    context.recalled = [
        {"name": memory.path.rpartition("/")[2], "text": memory.text} for memory in found
    ]
    context.shown = [memory.id for memory in found]
    return as_text(found)


def recall(home: str, context: Context, prompt: str) -> list[Memory]:
    """Return at most five new memories for a prompt, best first. Raise ValueError for bad files."""
    recalled = set(read_small(recalled_path(home, context.own_session), RECALLED_BYTES).split())
    return matching(home, context.swarm, context.profile, prompt, recalled)


def matching(
    home: str, swarm: str, profile: str, prompt: str, recalled: "set[str] | None" = None
) -> list[Memory]:
    """Return at most five memories for a prompt, best first, except those in `recalled`."""
    words = words_of(prompt[:MOST_PROMPT_CHARS])
    found: list[Memory] = []
    for part in parts(swarm, profile):
        text = read_small(part_path(home, part), PART_BYTES)
        if text:
            found += _matching(text, words)
    best: dict[str, Memory] = {}
    for memory in found:
        if memory.id not in (recalled or ()) and (
            memory.id not in best or best[memory.id].score < memory.score
        ):
            best[memory.id] = memory
    return sorted(best.values(), key=lambda memory: -memory.score)[:MOST_MEMORIES]


def _matching(part: str, words: list[str]) -> list[Memory]:
    scores: dict[str, int] = {}
    shared: dict[str, int] = {}
    for word in words:
        for entry in _line(part, f"{word} ").split():
            number, _, weight = entry.partition(":")
            scores[number] = scores.get(number, 0) + int(weight)
            shared[number] = shared.get(number, 0) + 1
    needed = FEWEST_WORDS + len(words) // WORDS_PER_MORE
    fitting = [number for number, count in shared.items() if count >= needed]
    fitting.sort(key=lambda number: -scores[number])
    found = []
    for number in fitting[: 4 * MOST_MEMORIES]:  # one file may have several passages
        fields = parse_object(_line(part, f"#{number} ").encode(), []) or {}
        id, path, text = fields.get("id"), fields.get("path"), fields.get("text")
        if isinstance(id, str) and isinstance(path, str) and isinstance(text, str):
            found.append(Memory(id, path, text, scores[number]))
    return found


def _line(part: str, beginning: str) -> str:
    """Find a part's line that begins with `beginning` by binary search; return its rest, or ""."""
    low, high = 0, len(part)
    while low < high:
        middle = (part.rfind("\n", low, (low + high) // 2) + 1) or low
        end = part.find("\n", middle)
        end = end if end >= 0 else len(part)
        start = middle + len(beginning)
        if part[middle:start] == beginning:
            return part[start:end]
        if part[middle:start] < beginning:
            low = end + 1
        else:
            high = middle
    return ""


def words_of(text: str) -> list[str]:
    """Return the words of a text in order, without duplicates and without a plural -s."""
    words = [_singular(word) for word in text.lower().translate(_SPACES).split()]
    return [*dict.fromkeys([word for word in words if 1 < len(word) <= 40])]


def _singular(word: str) -> str:
    is_plural = len(word) > 3 and word.endswith("s") and not word.endswith("ss")
    return word[:-1] if is_plural else word


def as_text(memories: list[Memory]) -> str:
    """Return the memories as quoted text for the context, or ""."""
    if not memories:
        return ""
    from hivepipe.text.quoting import on_one_line, quoted  # noqa: PLC0415  few prompts have any

    found = [
        f"{on_one_line(memory.path, MOST_PATH_CHARS)}\n{quoted(memory.text, MOST_MEMORY_CHARS)}"
        for memory in memories
    ]
    head = "Notes from earlier sessions that share words with this prompt, quoted:"
    return "\n\n".join([head, *found])


def parts(swarm: str, profile: str) -> list[str]:
    """Return the names of a session's memory parts: the user's, the swarm's, the profile's."""
    names = ["all", f"swarm-{short_hash(swarm)}"]
    return [*names, f"profile-{profile}"] if profile else names


def part_path(home: str, part: str) -> str:
    return f"{home}/recall/{part}.txt"


# ---- memories that were shown


def recalled_path(home: str, session: str) -> str:
    """Return the file that lists the memories shown to a session."""
    return f"{home}/recall/told-{short_hash(session)}"


def wanted_path(home: str) -> str:
    """Return the file whose time says when a session last wanted memories."""
    return f"{home}/recall/wanted"


def note_shown(home: str, context: Context) -> None:
    """Record memories as shown, so that they are not shown again.

    Call this after the event's hand-over.
    """
    if not context.own_session:
        return
    path = recalled_path(home, context.own_session)
    try:
        descriptor = open_or_make(path, posix.O_WRONLY | posix.O_APPEND)
        try:
            posix.write(descriptor, "".join([f"{id}\n" for id in context.shown]).encode())
        finally:
            posix.close(descriptor)
    except OSError:  # a full disk: the memory is shown again
        return


def forget_shown(home: str, session: str) -> None:
    """Forget which memories were shown: after a start or compaction, none is in the context.

    Also touch the `wanted` file, which makes workers keep the parts up to date.
    """
    try:
        overwrite_small(wanted_path(home), "1\n")
        posix.unlink(recalled_path(home, session))
    except OSError:
        return
