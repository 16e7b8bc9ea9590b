"""Splitting a memory file loses no text and makes no chunk that is too long."""

from hypothesis import given
from hypothesis import strategies as st

from hivepipe.agents.memory.chunks import MOST_CHARS, chunks

lines = st.text(alphabet="ab #\n", max_size=4_000) | st.just("word " * 2_000) | st.just("x" * 5_000)


@given(lines)
def test_every_character_but_white_space_is_in_a_chunk(text: str) -> None:
    found = chunks(text)
    assert all(0 < len(chunk) <= MOST_CHARS for chunk in found)
    assert "".join("".join(found).split()) == "".join(text.split())


def test_a_section_is_a_chunk_and_a_long_one_several() -> None:
    text = "# Tea\n\nGreen.\n\n## Coffee\n\n" + "\n\n".join(["Black. " * 50] * 5)
    found = chunks(text)
    assert found[0] == "# Tea\n\nGreen."
    assert found[1].startswith("## Coffee")
    assert len(found) > 2
