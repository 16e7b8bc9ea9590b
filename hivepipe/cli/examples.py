"""Examples of every command, shown at the end of its `--help`.

If a command has no entry, its name is its example.
"""

import textwrap
from collections.abc import Iterable, Iterator

import click

from hivepipe.cli.parameters import Choice

_WIDTH = 72

EXAMPLES: dict[str, tuple[str, ...]] = {
    "init": ("hivepipe init", "hivepipe init --user --dry-run"),
    "migrate": ("hivepipe migrate --dry-run", "hivepipe migrate"),
    "uninstall": ("hivepipe uninstall", "hivepipe uninstall --purge"),
    "trust": ("hivepipe trust", "hivepipe trust hivepipe.toml --yes", "hivepipe trust --remove"),
    "completion": ('eval "$(hivepipe completion bash)"', "hivepipe completion fish | source"),
    "up": ("hivepipe up -d", "hivepipe up -d --redis-url redis://127.0.0.1:6379/7"),
    "down": ("hivepipe down", "hivepipe down --all"),
    "status": ("hivepipe status", "hivepipe status --watch"),
    "web": ("hivepipe web --port 9200",),
    "tail": ("hivepipe tail", "hivepipe tail --session 7b1f0c9e --lines 50 --once"),
    "logs": ("hivepipe logs", "hivepipe logs writer --follow"),
    "move-home": (
        "hivepipe move-home",
        "hivepipe move-home --in-tree",
        "hivepipe move-home --from ~/shop",
    ),
    "sessions": ("hivepipe sessions", "hivepipe sessions --all --json"),
    "session show": ("hivepipe session show 7b1f0c9e",),
    "session log": ("hivepipe session log 7b1f0c9e --utc",),
    "agents": ("hivepipe agents --session 7b1f0c9e", "hivepipe agents --day 2026-11-21"),
    "agent show": ("hivepipe agent show a41c09be",),
    "skills": ("hivepipe skills", "hivepipe skills --commands"),
    "costs": ("hivepipe costs --since 2026-11-01", "hivepipe costs --by model"),
    "redact": ("hivepipe redact notes.txt", "hivepipe redact --report - < notes.txt"),
    "archive list": ("hivepipe archive list --agents",),
    "archive show": ("hivepipe archive show 7b1f0c9e --lines",),
    "archive follow": ("hivepipe archive follow ~/notes", "hivepipe archive follow"),
    "search": (
        "hivepipe search 'session timeout' config*",
        "hivepipe search login --since 2026-11-01",
    ),
    "transcript": (
        "hivepipe transcript last",
        "hivepipe transcript 7b1f0c9e --html > talk.html",
    ),
    "disk": ("hivepipe disk", "hivepipe disk --prune"),
    "export": ("hivepipe export --jsonl > all.jsonl",),
    "summaries show": ("hivepipe summaries show 7b1f0c9e",),
    "summaries run": ("hivepipe summaries run 7b1f0c9e --dry-run",),
    "credentials set": (
        "hivepipe credentials set OPENROUTER_API_KEY",
        "hivepipe credentials set OPENAI_API_KEY --from-environment",
    ),
    "credentials remove": ("hivepipe credentials remove OPENROUTER_API_KEY",),
    "forget": ("hivepipe forget 7b1f0c9e --dry-run", "hivepipe forget --before 2026-06-01"),
    "failed list": ("hivepipe failed list --operation insert_agent",),
    "failed show": ("hivepipe failed show 5d2c",),
    "failed retry": ("hivepipe failed retry --all",),
    "failed discard": ("hivepipe failed discard 5d2c",),
    "task add": ("hivepipe task add 'Make the session timeout configurable' --id timeout",),
    "task list": ("hivepipe task list --all",),
    "task show": ("hivepipe task show timeout",),
    "task progress": ("hivepipe task progress timeout 'the setting is read, tests are missing'",),
    "task assign": ("hivepipe task assign timeout 7b1f0c9e",),
    "task done": ("hivepipe task done timeout",),
    "task cancel": ("hivepipe task cancel timeout --reason 'we keep the old one'",),
    "task reopen": ("hivepipe task reopen timeout",),
    "guard explain": ("hivepipe guard explain loop",),
    "guard try": ("hivepipe guard try ~/.claude/projects/-home-ana-shop/7b1f0c9e.jsonl",),
    "guard mode": ("hivepipe guard mode", "hivepipe guard mode all"),
    "context": ("hivepipe context --source compact --session 7b1f0c9e",),
    "hive rights": ("hivepipe hive rights", "hivepipe hive rights commits"),
    "hive spawn": (
        "hivepipe hive spawn shop 'Make the session timeout configurable.'",
        "hivepipe hive spawn shop --file task.md",
    ),
    "hive resume": ("hivepipe hive resume shop-7b1f 'The tests may use the network.'",),
    "hive answer": ("hivepipe hive answer shop-7b1f --option 2",),
    "hive park": ("hivepipe hive park shop-7b1f",),
    "hive archive": ("hivepipe hive archive shop-7b1f shop-a41c",),
    "hive delete": ("hivepipe hive delete shop-7b1f",),
    "hive check": ("hivepipe hive check", "hivepipe hive check shop-7b1f"),
    "hive costs": ("hivepipe hive costs --by project",),
    "hive learnings": ("hivepipe hive learnings shop",),
    "hive transcript": ("hivepipe hive transcript shop-7b1f --calls",),
    "hive monitor": ("hivepipe hive monitor", "hivepipe hive monitor --once"),
    "hive projects add": ("hivepipe hive projects add shop ~/src/shop",),
    "hive projects remove": ("hivepipe hive projects remove shop",),
    "profile add": ("hivepipe profile add ana --role lead",),
    "profile show": ("hivepipe profile show ana SOUL.md",),
    "profile history": ("hivepipe profile history ana SOUL.md",),
    "profile remove": ("hivepipe profile remove ana",),
    "profile put": ("hivepipe profile put ana SOUL.md ./soul.md",),
    "memory search": ("hivepipe memory search release --scope swarm",),
    "memory forget": ("hivepipe memory forget ~/.claude/projects/-home-ana-shop/memory/old.md",),
    "team init": ("hivepipe team init postgresql://admin@db.example.org/hivepipe",),
    "team invite": ("hivepipe team invite ana", "hivepipe team invite ci --ci"),
    "team join": ("hivepipe team join hivepipe-eyJ1cmwi...", "hivepipe team join --share metadata"),
    "team leave": ("hivepipe team leave", "hivepipe team leave --purge"),
    "team policy": (
        "hivepipe team policy",
        "hivepipe team policy 'github.com/acme/*' prompts",
    ),
    "team store": ("hivepipe team store", "hivepipe team store s3://acme-hivepipe"),
    "team archive-key": ("hivepipe team archive-key --new",),
    "team retention": ("hivepipe team retention", "hivepipe team retention 12"),
    "team audit": ("hivepipe team audit", "hivepipe team audit --all"),
    "team page-login": ("hivepipe team page-login", "hivepipe team page-login --revoke"),
    "team page": (
        "hivepipe team page --header X-Forwarded-Email --proxy 10.0.0.7",
        "hivepipe team page --oidc https://id.acme --client-id x --url https://hive",
    ),
    "team revoke": ("hivepipe team revoke laptop",),
    "team forget": ("hivepipe team forget 7b1f0c9e",),
    "team export": ("hivepipe team export ana",),
    "rq": ("hivepipe rq -- info", "hivepipe rq -- requeue --queue medium --all"),
    "import-queue": ("hivepipe import-queue ~/old/queue --dry-run",),
    "import-db": ("hivepipe import-db ~/old/hive.db --dry-run",),
    "backup": ("hivepipe backup shop.hivepipe",),
    "restore": ("hivepipe restore shop.hivepipe --replace",),
    "cleanup": ("hivepipe cleanup --dry-run",),
}


def with_examples(command: click.Command, path: str) -> click.Command:
    """Append allowed values and examples to the help of a command and of its subcommands."""
    blocks = [*_values(command), *_examples(examples_of(command, path))]
    command.epilog = "\n\n".join(blocks) or None
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            with_examples(below, f"{path} {name}")
    return command


def examples_of(command: click.Command, path: str) -> tuple[str, ...]:
    """Return the examples of a command; a group that only holds commands has none."""
    is_called = not isinstance(command, click.Group) or command.invoke_without_command
    return EXAMPLES.get(path, (f"hivepipe {path}",)) if is_called else ()


def _values(command: click.Command) -> Iterator[str]:
    """Yield a block for each argument that has a fixed set of values."""
    for param in command.params:
        if isinstance(param, click.Argument) and isinstance(param.type, Choice):
            title = f"{(param.metavar or str(param.name)).upper().strip('[]')} is one of:"
            values = textwrap.wrap(", ".join(param.type.choices), _WIDTH, break_on_hyphens=False)
            yield _block(title, values)


def _examples(lines: tuple[str, ...]) -> Iterator[str]:
    if lines:
        yield _block("Examples:" if len(lines) > 1 else "Example:", lines)


def _block(title: str, lines: Iterable[str]) -> str:
    """Return a titled block of help text that click does not rewrap."""
    return "\n".join(("\b", title, *(f"  {line}" for line in lines)))
