"""Memories recalled for a prompt: which fit, whose they are, and what is stored for hooks."""

import os
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivepipe.agents.memory.index import AGENT, SWARM, Folder, MemoryIndex
from hivepipe.events.job_plan import Context
from hivepipe.hook import recall
from hivepipe.hook.recall import PART_BYTES, as_text, matching, part_path, words_of
from hivepipe.operations import recall as recall_operation
from hivepipe.operations.recall import prepare_recall

SHOP = "swarm-shop"
CART = "The checkout of the cart asks the tax service; without VPN it times out."
DEPLOY = "Deploys go to staging first, by hand, on Tuesdays."
TEA = "The user likes green tea, and no meetings before ten."
PROMPT = "The checkout is slow: is it the tax service?"


class Scene:
    """A home in which recall is in use, with an index of memories."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = str(root / "home")
        Path(self.home).mkdir()
        self.mark_in_use()
        self.index = MemoryIndex(Path(self.home, "memory.db"))

    def mark_in_use(self, days_ago: int = 0) -> None:
        recall.forget_shown(self.home, "s")
        then = time.time() - days_ago * 86_400
        os.utime(recall.wanted_path(self.home), (then, then))

    def put(self, name: str, *texts: str, scope: str = SWARM, owner: str = SHOP) -> None:
        folder = f"{self.root}/{scope}/{owner}"
        self.index.remember_folder(Folder(folder, scope, owner))
        self.index.put(f"{folder}/{name}", folder, (1, time.time_ns()), name, texts)

    def prepare(self) -> None:
        prepare_recall(self.home, self.index)

    def names(self, prompt: str, profile: str = "", swarm: str = SHOP) -> list[str]:
        found = matching(self.home, swarm, profile, prompt)
        return [memory.path.rpartition("/")[2] for memory in found]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    with closing(scene.index):
        yield scene


def test_memories_that_share_rare_words_are_found_best_first(scene: Scene) -> None:
    scene.put("cart.md", CART)
    scene.put("deploy.md", DEPLOY)
    scene.put("tea.md", TEA)
    scene.put("taxes.md", "The tax of a checkout is rounded.")
    scene.prepare()
    assert scene.names(PROMPT) == ["cart.md", "taxes.md"]
    assert scene.names("Deploy to STAGING, please!") == ["deploy.md"]
    assert scene.names("What is the time?") == []
    assert scene.names("tea") == []  # one word is not enough
    assert scene.names("") == []


def test_the_best_part_of_a_file_is_recalled_and_five_files_at_most(scene: Scene) -> None:
    for number in range(9):
        scene.put(f"{number}.md", f"Nothing {number}.", f"Purple elephants, part {number}.")
    for number in range(40):
        scene.put(f"other{number}.md", f"Something else, number {number}.")
    scene.prepare()
    found = matching(scene.home, SHOP, "", "where are the purple elephants")
    assert len(found) == 5
    assert len({memory.id for memory in found}) == 5
    assert all("Purple" in memory.text for memory in found)
    assert as_text(found).count("Purple") == 5
    assert as_text([]) == ""


def test_memories_of_others_are_not_recalled(scene: Scene) -> None:
    scene.put("cart.md", CART)
    scene.put("other.md", CART, owner="swarm-bank")
    scene.put("own.md", CART, scope=AGENT, owner="ada")
    scene.put("bob.md", CART, scope=AGENT, owner="bob")
    scene.put("users.md", CART, owner="")
    scene.prepare()
    assert sorted(scene.names(PROMPT)) == ["cart.md", "users.md"]
    assert sorted(scene.names(PROMPT, "ada")) == ["cart.md", "own.md", "users.md"]
    assert sorted(scene.names(PROMPT, swarm="swarm-bank")) == ["other.md", "users.md"]
    assert sorted(scene.names(PROMPT, swarm="elsewhere")) == ["users.md"]


def test_a_common_word_recalls_nothing_and_a_long_prompt_needs_more_than_two(scene: Scene) -> None:
    scene.put("cart.md", CART)
    scene.prepare()
    noise = " ".join(f"word{number}" for number in range(100))
    assert scene.names(f"{noise} tax service") == []
    assert scene.names(f"{noise} {CART}") == ["cart.md"]
    for number in range(20):
        scene.put(f"{number}.md", f"The checkout service and thing{number}.")
    scene.prepare()
    assert scene.names("the checkout service") == []


def test_a_memory_is_recalled_again_only_after_a_compaction(scene: Scene) -> None:
    scene.put("cart.md", CART)
    scene.prepare()
    context = Context(event_time_ns=1, own_session="s-1", swarm=SHOP)
    (found,) = recall.recall(scene.home, context, PROMPT)
    assert len(recall.recall(scene.home, context, PROMPT)) == 1  # the first result was not shown
    context.shown = [found.id]
    recall.note_shown(scene.home, context)
    assert recall.recall(scene.home, context, PROMPT) == []
    other = Context(event_time_ns=1, own_session="s-2", swarm=SHOP)
    assert len(recall.recall(scene.home, other, PROMPT)) == 1
    recall.forget_shown(scene.home, "s-1")
    assert len(recall.recall(scene.home, context, PROMPT)) == 1


def test_parts_are_written_only_while_recall_is_in_use(scene: Scene) -> None:
    scene.put("cart.md", CART)
    scene.mark_in_use(days_ago=recall_operation.KEPT_DAYS + 1)
    scene.prepare()
    assert scene.names(PROMPT) == []
    scene.mark_in_use()
    scene.prepare()
    assert scene.names(PROMPT) == ["cart.md"]
    path = Path(part_path(scene.home, recall.parts(SHOP, "")[1]))
    assert path.stat().st_mode & 0o777 == 0o600
    scene.index.forget_all(lambda text: "tax service" in text)
    scene.prepare()
    assert scene.names(PROMPT) == []
    assert not path.exists()


def test_a_part_is_never_longer_than_a_hook_reads(scene: Scene) -> None:
    for number in range(100):
        words = " ".join(f"w{number}x{other}é" for other in range(900))
        scene.put(f"{number}.md", f"{words} newest{number} of{number}them")
    scene.prepare()
    (path,) = Path(scene.home, "recall").glob("swarm-*.txt")
    assert path.stat().st_size <= PART_BYTES
    assert scene.names("newest99 of99them") == ["99.md"]
    assert scene.names("newest0 of0them") == []  # the oldest is left out


def test_a_damaged_part_is_left_out_and_one_of_another_form_refused(scene: Scene) -> None:
    path = Path(part_path(scene.home, "all"))
    for text in ("", "\n", "#0 {\nservice 0:1\ntax 0:1\n"):
        path.write_text(text)
        assert scene.names(PROMPT) == []
    path.write_text("tax 0:x\n")
    with pytest.raises(ValueError, match="invalid literal"):
        scene.names(PROMPT)


@given(st.sets(st.text("ab\u00e9z", min_size=1, max_size=6), max_size=30), st.text("ab\u00e9z"))
def test_a_line_is_found_by_binary_search(words: set[str], other: str) -> None:
    part = "".join(sorted(f"{word} of {word}\n" for word in words))
    for word in {*words, other}:
        assert recall._line(part, f"{word} ") == (f"of {word}" if word in words else "")


@given(st.text(max_size=200))
def test_words_are_found_in_any_text(text: str) -> None:
    for word in words_of(text):
        assert 1 < len(word) <= 40
        assert " " not in word
        assert not word.startswith("#")
