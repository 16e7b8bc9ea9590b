"""Commands, variables, operations, packages and files in the documentation exist."""

import ast
import functools
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from hivepipe import settings
from hivepipe.cli.command_table import COMMANDS, GROUPS
from hivepipe.cli.main import commands, main
from hivepipe.config.setting_table import SETTINGS
from hivepipe.mcp_server.tool_table import TOOLS
from hivepipe.migration import importing
from hivepipe.settings import ALIASES
from hivepipe.summaries.providers import KEPT

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
REFERENCE = (ROOT / "docs" / "commands.md").read_text()
SETTINGS_PAGE = (ROOT / "docs" / "settings.md").read_text()
MOST_WORDS = 22_000
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        ROOT / "tests" / "coverage.md",
        *ROOT.glob("tests/*/README.md"),
        ROOT / "benchmarks" / "README.md",
    ]
)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


HISTORY = ("CHANGELOG.md", "decisions.md")  # pages that may name removed things
OURS = {name_of(page): page.read_text() for page in PAGES if page.name not in HISTORY}
USERS_PAGES = (
    *("README", "agents", "commands", "forgetting", "glossary", "guard", "hive", "hosts"),
    *(
        "importing",
        "mcp",
        "moving",
        "operations",
        "plugin",
        "python",
        "redaction",
        "redis",
        "running",
    ),
    *("security", "settings", "statusline", "summaries", "team", "troubleshooting"),
    *("watching", "web"),
)
EXAMPLES = {"docs/first-change.md": {"models"}}  # the page adds this command
GENERAL = (  # explained once, above the lists
    *("--json", "--utc", "--yes", "--dry-run", "--limit"),
    *("--person", "--machine", "--admin", "--team", "--port", "--bind"),
)
READERS = ("variable", "of_this_process", "switched_on", "switched_off", "number", "read_setting")


def code_of(page: str) -> list[str]:
    """Return the code in a page: fenced, indented, or between backticks."""
    fences = re.findall(r"^```.*?^```$", page, re.MULTILINE | re.DOTALL)
    rest = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    indented = re.findall(r"^ {4,}\S.*$", rest, re.MULTILINE)
    return [*fences, *indented, *re.findall(r"`([^`\n]+)`", rest)]


def cells(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, without its two head rows."""
    section = f"\n{page}".split(f"\n{heading}\n", 1)[1]
    lines = section[section.index("\n|") :].strip("\n").split("\n")
    table = lines[: next((n for n, line in enumerate(lines) if line[:1] != "|"), len(lines))]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def items(page: str, heading: str) -> list[list[str]]:
    """Return the items of the lists below a heading, split at their first colon."""
    section = f"\n{page}".split(f"\n{heading}\n", 1)[1].split("\n## ")[0]
    found = re.findall(r"^- (.*(?:\n  .*)*)", section, re.MULTILINE)
    return [re.sub(r"\s+", " ", item).split(": ", 1) for item in found]


# ---- commands
def below(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield the commands that can be called, which excludes groups without their own action."""
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from below(f"{path} {name}", inner)
        if not command.invoke_without_command:
            return
    yield path, command


CALLABLE = dict(pair for name, command in commands().items() for pair in below(name, command))
ROWS = [(title, row) for title in GROUPS for row in items(REFERENCE, f"## {title}")]


def row_of(path: str) -> list[str]:
    asked = re.compile(rf"`{path}( [A-Z\[(-].*)?`")
    found = [row for _, row in ROWS if asked.fullmatch(row[0])]
    assert len(found) == 1, f"docs/commands.md: {len(found)} items `{path}`, not one"
    return found[0]


def test_every_command_has_a_row_in_the_group_of_the_help() -> None:
    for path in CALLABLE:
        row = row_of(path)
        (title,) = [title for title, each in ROWS if each == row]
        assert path.partition(" ")[0] in GROUPS[title], f"`{path}` is below `{title}`"
        assert row[1], path


def test_no_row_names_a_removed_command() -> None:
    rows = [row_of(path) for path in CALLABLE]
    others = [row[0] for _, row in ROWS if row not in rows]
    assert others == [], "docs/commands.md: hivepipe/cli/command_table.py has no such command"


@pytest.mark.parametrize("page", OURS)
def test_every_command_that_the_pages_name_exists(page: str) -> None:
    named = {
        name
        for code in code_of(OURS[page])
        for name in re.findall(r"(?<!from )\bhivepipe ([a-z][a-z-]*)", code)
    }
    assert named <= set(COMMANDS) | EXAMPLES.get(page, set())


def test_every_option_is_in_the_row_of_its_command_and_no_other() -> None:
    """An option of another command follows its name."""
    for path, command in CALLABLE.items():
        named = re.findall(r"`(--[a-z-]+)", row_of(path)[1])
        known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
        unknown = set(named) - known
        assert not unknown, f"docs/commands.md: `{path}` has no {', '.join(sorted(unknown))}"
        row = "|".join(row_of(path)).replace(f"`{path} -", "`-")
        for option in command.params:
            if isinstance(option, click.Option) and not set(option.opts) & set(GENERAL):
                is_named = any(re.search(rf"`{name}\b", row) for name in option.opts)
                assert is_named, f"docs/commands.md: name `{option.opts[0]}` in the row of `{path}`"


@pytest.mark.parametrize("name", GENERAL)
def test_general_options_are_explained_above_the_lists(name: str) -> None:
    assert f"`{name}`" in REFERENCE.split("\n## ")[0]


def test_wrong_usage_exits_with_64_as_the_reference_says() -> None:
    assert "Wrong usage exits with 64." in REFERENCE
    assert CliRunner().invoke(main, ["no-such-command"]).exit_code == 64
    assert CliRunner().invoke(main, ["up", "--no-such-option"]).exit_code == 64


def test_the_readme_shows_and_installs_before_it_explains() -> None:
    parts = (
        "```\n$ hivepipe",
        "    make demo",
        "    make test",
        "hivepipe init",
        "| What is recorded?",
    )
    places = [README.index(part) for part in parts]
    assert places == sorted(places)


def test_make_help_lists_every_target_for_people() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = re.findall(r"^make (\w+) +\S", done.stdout, re.MULTILINE)
    (phony,) = re.findall(r"^\.PHONY: (.+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert sorted([*listed, "collect"]) == sorted(phony.split())


# ---- variables
@functools.cache
def read_variables() -> frozenset[str]:
    """Return hivepipe's variables that the code reads by name."""
    found: set[str] = set()
    files = [*ROOT.glob("hivepipe/**/*.py"), *ROOT.glob("workers/*.py")]
    for text in filter(re.compile("HIVEPIPE_").search, map(Path.read_text, files)):
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
            first = node.args[0]
            if called in READERS and isinstance(first, ast.Constant):
                found.add(str(first.value))
    return frozenset(name for name in found if name.startswith("HIVEPIPE_"))


def test_the_search_for_variables_finds_some() -> None:
    assert {"HIVEPIPE_HOME", "HIVEPIPE_DISABLED", "HIVEPIPE_USE_QUEUE"} <= read_variables()


def test_the_table_names_exactly_the_variables_that_have_no_setting() -> None:
    named = {row[0].split("`")[1] for row in items(SETTINGS_PAGE, "## Environment variables")}
    assert named == read_variables() - {setting.variable for setting in SETTINGS}


@pytest.mark.parametrize("page", OURS)
def test_no_page_names_a_variable_that_nothing_reads(page: str) -> None:
    of_compose = set(re.findall(r"HIVEPIPE_\w+", (ROOT / "compose.yaml").read_text()))
    named = {name for name in re.findall(r"HIVEPIPE_\w+", OURS[page]) if "_TEST_" not in name}
    of_files = {setting.variable for setting in SETTINGS if setting.is_of_files}
    old = {name for names in ALIASES.values() for name in names}
    assert named <= read_variables() | of_compose | of_files | old | set(KEPT)


def test_the_page_names_exactly_what_a_stack_keeps_of_its_environment() -> None:
    lead = SETTINGS_PAGE.split("\n## Environment variables\n")[1].split("\n- ")[0]
    assert re.findall(r"`(HIVEPIPE_\w+)`", lead) == list(settings._INHERITED_OURS)


def test_the_page_names_the_old_names() -> None:
    (paragraph,) = re.findall(r"^Old names still work:.*?\n\n", SETTINGS_PAGE, re.M | re.S)
    old = [name for names in ALIASES.values() for name in names]
    assert sorted(re.findall(r"`([A-Z_]+)`", paragraph)) == sorted(old)


def test_the_page_names_exactly_the_settings_of_files() -> None:
    parts = ("## Recording", "## Stack", "## Summaries", "## Hive")
    named = [row[0].split("`")[1] for part in parts for row in items(SETTINGS_PAGE, part)]
    assert sorted(named) == sorted(each.name for each in SETTINGS)
    assert all(setting.variable == f"HIVEPIPE_{setting.name.upper()}" for setting in SETTINGS)
    variables = {setting.variable for setting in SETTINGS if not setting.is_of_files}
    assert variables <= read_variables()


def test_the_page_says_which_settings_only_the_users_own_file_has() -> None:
    (named,) = re.findall(r"^Only your own file,.*?\n\n", SETTINGS_PAGE, re.M | re.S)
    of_summaries = {row[0].split("`")[1] for row in items(SETTINGS_PAGE, "## Summaries")}
    found = {*re.findall(r"`(\w+)`", named), *of_summaries}
    assert found == {setting.name for setting in SETTINGS if setting.is_the_users}


def test_the_page_says_which_settings_no_variable_sets() -> None:
    (named,) = re.findall(r"No\s+variable\s+can\s+set[^.]*\.", SETTINGS_PAGE)
    found = set(re.findall(r"`(\w+)`", named))
    assert found == {setting.name for setting in SETTINGS if setting.is_of_files}


# ---- architecture
def test_the_page_says_where_operations_are_declared() -> None:
    assert "`hivepipe/operations/families`" in ARCHITECTURE
    assert (ROOT / "hivepipe" / "operations" / "families").is_dir()


def test_every_alert_is_named() -> None:
    rules = (ROOT / "hivepipe" / "alerts" / "rules.py").read_text()
    raised = set(re.findall(r'\bAlert\(\s*"(\w+)"', rules))
    listed = re.findall(r"^- `(\w+)`(?: \(urgent\))?:", OURS["docs/watching.md"], re.MULTILINE)
    assert set(listed) == raised, "the list of docs/watching.md"


def test_every_tool_of_the_mcp_server_is_named() -> None:
    listed = re.findall(r"^- `(\w+)`:", OURS["docs/mcp.md"], re.MULTILINE)
    assert set(listed) == set(TOOLS), "the list of docs/mcp.md"


def test_the_packages_are_those_that_the_linter_knows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = project["tool"]["importlinter"]["contracts"]
    layers = [re.split(r" [|:] ", layer) for layer in contract["layers"]]
    rows = items(ARCHITECTURE, "## Packages")
    assert [re.findall(r"`(\w+)`", row[0]) for row in rows] == layers


def test_the_envelope_is_described_key_by_key() -> None:
    source = (ROOT / "hivepipe" / "events" / "job_plan.py").read_text()
    body = source.split("def envelope_fields(", 1)[1].split("\n    }\n", 1)[0]
    keys = re.findall(r'^ {8}"(\w+)":', body, re.MULTILINE)
    assert keys == [row[0].strip("`") for row in items(ARCHITECTURE, "### Envelope")]


# ---- words and links

WORDS = items(GLOSSARY, "# Glossary")


def test_the_glossary_names_each_word_once() -> None:
    words = [row[0] for row in WORDS]
    assert sorted(words) == sorted(set(words))


@pytest.mark.parametrize(("word", "meaning"), WORDS)
def test_the_glossary_has_one_sentence_for_each_word(word: str, meaning: str) -> None:
    assert re.fullmatch(r"\*\*[\w. ]+\*\*", word)
    assert meaning.endswith(".")
    assert ". " not in meaning


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_targets_of_relative_links_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        leads_to = page.parent / path if path else page
        assert leads_to.exists(), target
        assert not anchor or anchor in anchors(leads_to), target


@pytest.mark.parametrize("page", OURS)
def test_no_page_names_a_path_of_the_machine_it_was_written_on(page: str) -> None:
    assert str(ROOT) not in OURS[page]
    assert not re.search(r"/(home|Users|root|work)/", OURS[page])


def prose(text: str) -> list[str]:
    """Return the lines outside of code and tables, without the targets of links."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line for line in text.splitlines() if not re.match(r" {4}|\||!\[", line)]
    return [re.sub(r"\]\([^)]*\)", "]", line) for line in lines]


def test_the_readme_names_every_page_those_for_users_first() -> None:
    named = re.findall(r"^\| \[[^]]+\]\(docs/([\w-]+)\.md\)", README, re.MULTILINE)
    assert sorted(named) == sorted(page.stem for page in (ROOT / "docs").glob("*.md"))
    assert set(named[: len(USERS_PAGES) - 1]) == {*USERS_PAGES} - {"README"}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=name_of
)
def test_the_lines_of_a_page_fit_into_100_columns(page: Path) -> None:
    assert [line for line in prose(page.read_text()) if len(line) > 100] == []


def test_the_pages_are_short_enough_to_be_read() -> None:
    """A `|` between two cells is not a word."""
    texts = [page.read_text() for page in (ROOT / "docs").glob("*.md")]
    words = sum(word != "|" for text in texts for word in text.split())
    over = words - MOST_WORDS
    assert over <= 0, f"cut {over} words in docs: together the pages may have {MOST_WORDS:,}"


# ---- an import's report
def test_the_page_explains_every_outcome_of_an_import() -> None:
    outcomes = (
        *(importing.TAKEN, importing.BEFORE, importing.DOUBLE),
        *(importing.REFUSED, importing.BROKEN, importing.NOTHING),
    )
    page = OURS["docs/importing.md"]
    assert [outcome for outcome in outcomes if f"\n- {outcome}: " not in page] == []


# ---- decisions
def test_the_numbers_of_decisions_ascend() -> None:
    """Removed decisions leave gaps in the numbers."""
    text = (ROOT / "docs" / "decisions.md").read_text()
    numbers = [int(number) for number in re.findall(r"^\*\*(\d+)\. ", text, re.MULTILINE)]
    assert len(numbers) > 100
    assert numbers == sorted(set(numbers))
    assert len(numbers) == len(re.split(r"\n\n", text.strip())) - 2
