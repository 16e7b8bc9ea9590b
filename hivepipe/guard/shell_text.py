"""Read the words of shell commands: quotes, expansions, brackets and here-documents.

Hooks import this module if a shared root is set.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROCESS = ("<(", ">(")  # a word that stands for the input or output of a command
ENDS_WORD = " \t<>;&|()\n"
_BRACKETS = {"(": ")", "{": "}", "[": "]"}
_PLAIN = "/._-:=@%+"  # most words have only letters, digits and these
_QUOTES = "'\""
_OPENS_TEST = ("[[ ", "[[\t", "[[\n")
_DOLLAR_QUOTES = ("$'", '$"')
_TEXT = "\0"  # the quote of a text that is expanded but not split, such as a here-document
_OPEN, _COMMA, _CLOSE = "\1\2\3"  # marks in place of the unquoted `{`, `,` and `}` of a word
_TO_MARKS = {"{": _OPEN, ",": _COMMA, "}": _CLOSE}
_PATTERN = frozenset("*?[")
_TO_SPLIT = frozenset(" \t\n*?[")  # characters that matter outside of quotes
_FROM_MARKS = str.maketrans({mark: sign for sign, mark in _TO_MARKS.items()})
_MOST_ALTERNATIVES = 50
_LONGEST_ALTERNATIVES = 500_000  # characters, together
_LONGEST_SUBSCRIPT = 20
_LONGEST_SCAN = 500  # characters of `${}`, `(( ))` or `[[ ]]`
_DEEPEST_SCAN = 10  # brackets in these
_NO_LIMIT = 1 << 62


class Word:
    """A word of a command; `literal` is True if it contains no expansion."""

    __slots__ = ("elements", "inner", "literal", "text")

    def __init__(
        self,
        text: str,
        literal: bool,
        inner: "Sequence[str]" = (),
        elements: "Sequence[Word]" = (),
    ) -> None:
        """`text` is the word without quotes, with `$` in place of each substitution.

        `inner` lists the commands of the substitutions, `elements` the words of `NAME=(...)`.
        """
        self.text = text
        self.literal = literal
        self.inner = inner
        self.elements = elements


Values = dict[str, "Sequence[Word]"]  # of variables; an array is `NAME[@]`


def read_words(command: str, at: int, values: Values) -> tuple[list[Word], int]:
    """Read the word at `at`; return the words that it stands for, and the position after it.

    A `[[ ]]` and the list of an array are one word.
    """
    words, end = _split_words(command, at, values)
    text = words[-1].text
    if text == "[[" and (end_of_test := _end_of_test(command, end)):
        return [Word("[[", True, expanded(command[end:end_of_test]))], end_of_test + 2
    if command.startswith("(", end) and text.endswith("="):
        end_of_list = _closing(command, end)
        elements = words_in(command[end + 1 : end_of_list], values)
        inner = [text for word in elements for text in word.inner]
        return [Word(text, False, inner, elements)], end_of_list + 1
    return words, end


def words_in(text: str, values: Values) -> list[Word]:
    """Return the words in the list of an array, or in another text without operators."""
    words: list[Word] = []
    at = 0
    while at < len(text):
        if text[at] == "#":
            at = end_of_line(text, at)
        elif text[at] in ENDS_WORD and not text.startswith(PROCESS, at):
            at += 1
        else:
            more, at = _split_words(text, at, values)
            words += more
    return words


def _split_words(command: str, at: int, values: Values) -> tuple[list[Word], int]:
    """Read the word at `at`, with its braces and variables of several words."""
    words, end = _read_word(command, at, values)
    if len(words) == 1 and words[0].text.isprintable():  # it has no marks
        return words, end
    return [
        Word(text, word.literal, word.inner) for word in words for text in _alternatives(word.text)
    ], end


def _read_word(command: str, at: int, values: Values, quote: str = "") -> tuple[list[Word], int]:
    """Read one word, with marks for its braces; return what it stands for and its end.

    It stands for several words if it contains an array, or unquoted a variable with spaces.
    """
    begin = at
    words: list[Word] = []
    parts: list[str] = []
    literal = True
    inner: list[str] = []
    length = len(command)
    while at < length:
        character = command[at]
        if character.isalnum() or character in _PLAIN:
            end = _end_of_plain(command, at)
            parts.append(command[at:end])
            at = end - 1
        elif quote and character == quote[-1]:
            quote = ""
        elif quote == "'":
            end = command.find("'", at)
            end = end if end >= 0 else length
            parts.append(command[at:end])
            at = end - 1
        elif character == "\\" and at + 1 < length:
            at += 1
            parts.append(command[at] if command[at] != "\n" else "")
        elif not quote and (character in _QUOTES or command.startswith(_DOLLAR_QUOTES, at)):
            quote = command[at : at + 1 + (character == "$")]
            at += len(quote) - 1
        elif _is_expansion(command, at, quote):
            found, at = _expansion(command, at, quote, values)
            literal = _add_values((words, parts, inner), literal, found, quote)
        elif quote:
            parts.append(character)
        elif character in ENDS_WORD:
            break
        else:
            literal = literal and character not in "*?["
            parts.append(_TO_MARKS.get(character, character))
        at += 1
    text = "".join(parts)
    is_file = not words and text[:1] == "~" != command[begin]  # as in '~'
    words.append(Word("./" * is_file + text, literal or text in ("[", "[["), inner))
    return words, at


def _end_of_plain(command: str, at: int) -> int:
    """Return the end of the letters, digits and _PLAIN characters after `at`."""
    at += 1
    while at < len(command) and ((character := command[at]).isalnum() or character in _PLAIN):
        at += 1
    return at


def _add_values(
    to: tuple[list[Word], list[str], list[str]], literal: bool, values: "Sequence[Word]", quote: str
) -> bool:
    """Append the values of an expansion to (words, parts of the current word, its commands).

    All but the last end a word. Return whether the current word is literal.
    """
    words, parts, inner = to
    if not quote and (split := _split(values)) is not values and "=" not in "".join(parts):
        values = split  # the shell does not split the value of `X=$Y`
    for value in values[:-1]:
        words.append(Word("".join([*parts, value.text]), literal and value.literal, list(inner)))
        parts.clear()
        inner.clear()
        literal = True
    for value in values[-1:]:
        parts.append(value.text)
        inner += value.inner
        literal = literal and value.literal
    return literal


def _split(words: "Sequence[Word]") -> "Sequence[Word]":
    """Return the words into which the shell splits values without quotes; it reads patterns."""
    if all(_TO_SPLIT.isdisjoint(word.text) for word in words):
        return words
    return [
        Word(text, word.literal and not _PATTERN & set(text), word.inner)
        for word in words
        for text in word.text.split() or ("",)
    ]


def _is_expansion(command: str, at: int, quote: str) -> bool:
    if command[at] in "$`":
        return quote != "$'" and command[at + 1 : at + 2] not in ("", " ")
    return not quote and command.startswith(PROCESS, at)


def _expansion(command: str, at: int, quote: str, values: Values) -> tuple["Sequence[Word]", int]:
    """Return the value of an expansion, or `$` if it is unknown, and the expansion's last position.

    Of a variable with an unknown value, only the `$` is read.
    """
    name, end = _variable(command, at)
    if name in values:
        return values[name], end
    inner, end = _substitution(command, at, quote)
    if "PWD" in values and [text.strip() for text in inner] == ["pwd"]:
        return values["PWD"], end
    return [Word("$", False, inner)], end


def expanded(text: str) -> "Sequence[str]":
    """Return the commands in the substitutions of a text that the shell expands."""
    return _read_word(text, 0, {}, _TEXT)[0][0].inner if "$(" in text or "`" in text else ()


def _variable(command: str, at: int) -> tuple[str, int]:
    """Return a variable without operators, such as `a` or `a[@]`, and its last position.

    Return "" and `at` if there is no such variable.
    """
    if command[at] != "$":
        return "", at
    has_brace = command.startswith("{", at + 1)
    begin = end = at + 1 + has_brace
    while end < len(command) and (command[end].isalnum() or command[end] == "_"):
        end += 1
    if end == begin and command.startswith(("@", "*"), begin):
        end += 1
    elif has_brace and command.startswith("[", end):
        subscript, bracket, _ = command[end : end + _LONGEST_SUBSCRIPT].partition("]")
        end += len(subscript + bracket)
    if has_brace and not command.startswith("}", end):
        return "", at
    return command[begin:end], end - 1 + has_brace


def _substitution(command: str, at: int, quote: str) -> tuple["Sequence[str]", int]:
    """Return the commands in the substitution at `at`, and the position at which it ends.

    For a variable without braces, return [] and `at`.
    """
    if command[at] == "`":
        end = command.find("`", at + 1)
        end = end if end >= 0 else len(command)
        return [command[at + 1 : end]], end
    begin = at + 1
    if command[begin] not in _BRACKETS:
        return [], at
    if command[begin] == "(" and not (end := end_of_arithmetic(command, begin)):
        end = _closing(command, begin)
        return [command[begin + 1 : end]], end
    if command[begin] != "(":
        end = _closing(command, begin, '"' if quote else _QUOTES, _LONGEST_SCAN)
    return (expanded(command[begin + 1 : end]), end) if end < len(command) else ([], at)


def end_of_arithmetic(command: str, at: int) -> int:
    """Return the position of the last bracket of `((...))` at `at`, or 0 for nested subshells."""
    if not command.startswith("((", at) or command.find("))", at, at + _LONGEST_SCAN) < 0:
        return 0
    end = _closing(command, at + 1, limit=_LONGEST_SCAN) + 1
    return end if command.startswith(")", end) else 0


def _end_of_test(command: str, at: int) -> int:
    """Return the position of the `]]` that ends a test, or 0."""
    for position in _unquoted(command, at, _QUOTES, _LONGEST_SCAN):
        if command[position] == ";" or command.startswith(_OPENS_TEST, position):
            break
        if command.startswith("]]", position) and command[position - 1] in " \t\n":
            return position
    return 0


def _closing(command: str, at: int, quotes: str = _QUOTES, limit: int = _NO_LIMIT) -> int:
    """Return the position of the bracket that closes the one at `at`, or the command's length.

    With a `limit`, the search stops after so many characters, or at deeply nested brackets.
    """
    opener, closer = command[at], _BRACKETS[command[at]]
    depth = 0
    for position in _unquoted(command, at, quotes, limit):
        if command[position] == opener:
            depth += 1
            if depth > _DEEPEST_SCAN and limit == _LONGEST_SCAN:
                break
        elif command[position] == closer:
            depth -= 1
            if not depth:
                return position
    return len(command)


def _unquoted(command: str, at: int, quotes: str, limit: int) -> "Iterator[int]":
    """Yield the positions of the next `limit` characters, except in quotes.

    Comments and here-documents are skipped, too, unless `at` begins `${}`, `$[]` or `(( ))`.
    """
    last = min(at + limit, len(command))
    is_arithmetic = command.startswith("((", max(at - 1, 0))
    has_commands = not is_arithmetic and not command.startswith(("{", "["), at)
    here_documents: list[tuple[str, bool]] = []
    quote = ""
    while at < last:
        character = command[at]
        if character == "\\" and quote != "'":
            at += 1
        elif quote:
            quote = "" if character == quote else quote
        elif character in quotes:
            quote = character
        elif character == "<" and command.startswith("<<<", at):
            at += 2
        elif character == "<" and has_commands and command.startswith("<<", at):
            delimiter, at = _read_delimiter(command, at + 2)
            if not delimiter.isdigit():  # a digit follows a shift, as in `((1 << 2))`
                here_documents.append((delimiter, False))
            continue
        elif character == "#" and has_commands and command[at - 1] in ENDS_WORD:
            at = end_of_line(command, at)
            continue
        elif character == "\n" and here_documents:
            _, at = read_here_documents(command, at + 1, here_documents)
            continue
        else:
            yield at
        at += 1


def _read_delimiter(command: str, at: int) -> tuple[str, int]:
    """Return the delimiter of the here-document whose `<<` ends at `at`, and its end."""
    while command[at : at + 1] in ("-", " ", "\t"):
        at += 1
    words, at = _read_word(command, at, {})
    return words[0].text, at


def read_here_documents(
    command: str, at: int, waiting: list[tuple[str, bool]]
) -> tuple[list[Word], int]:
    """Return the here-documents that begin at `at`, and the position after them.

    `waiting` has each delimiter, and whether the shell expands the text. The list is emptied.
    """
    texts: list[Word] = []
    for delimiter, is_expanded in waiting:
        first = begin = at
        while at < len(command):
            begin, end = at, end_of_line(command, at)
            at = end + 1
            if command[begin:end].lstrip("\t") == delimiter:
                break
        else:
            begin = len(command)
        text = command[first:begin]
        texts.append(Word(text, True, expanded(text) if is_expanded else ()))
    waiting.clear()
    return texts, at


def end_of_line(command: str, at: int) -> int:
    end = command.find("\n", at)
    return end if end >= 0 else len(command)


def _alternatives(text: str) -> list[str]:
    """Return the words that the braces of a word stand for: `a{b,c}` is `ab ac`."""
    done: list[str] = []
    waiting = [text]
    budget = _LONGEST_ALTERNATIVES
    while waiting:
        text = waiting.pop()
        end = text.find(_CLOSE)
        begin = text.rfind(_OPEN, 0, max(end, 0))
        if begin < 0 or len(done) + len(waiting) > _MOST_ALTERNATIVES:
            done.append(text.translate(_FROM_MARKS))
            continue
        parts = text[begin + 1 : end].split(_COMMA)
        budget -= len(parts) * len(text)
        if budget < 0:
            done.append(text.translate(_FROM_MARKS))
            continue
        if len(parts) == 1:
            parts = ["{" + parts[0] + "}"]
        waiting += [text[:begin] + part + text[end + 1 :] for part in reversed(parts)]
    return list(dict.fromkeys(done))  # nested braces give some twice
