"""The intake of one event: locate, plan, hand over, answer.

The intake runs in the hook's own process (hivepipe.hook.run) or in the process `intake`
(hivepipe.hook.intake_server). A module that few events need is imported where they need it
(docs/decisions.md, 4).
"""
# ruff: noqa: PLC0415

import posix
import sys

from hivepipe import home, sender, settings
from hivepipe.events import job_plan, parse_event
from hivepipe.events.claude_code import (
    EDIT_TOOLS,
    IDENTITY_FILES,
    PROBE,
    Event,
    PostToolUse,
    PreToolUse,
    UserPromptSubmit,
    valid_id,
)
from hivepipe.hook import instance as instances

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hivepipe.guard.client import Note, WatchedEvent
    from hivepipe.hook.intake_server import Exchange
    from hivepipe.hook.stdin import Input

LAST_LOCK_SECS = 0.05  # time limit for the throttle's lock after the deadline
LAST_BYTES = 1 << 20  # parsed after the deadline, of an event that is too large
NEUTRAL = b""  # Claude Code shows what a hook prints

Taken = tuple[bytes, str]  # the answer, and the spool file to apply now, or ""
NOTHING: Taken = (NEUTRAL, "")

keep: "Callable[[], object] | None" = None  # spools the event; None once the event is safe
take_back: "Callable[[], object] | None" = None  # undoes the count of the event's operation
place_of_event: "home.Place | None" = None  # None until it is known


def is_left_to_settings(name: str) -> bool:
    """Tell whether this process is the plugin's hook and has nothing to do for this event."""
    if not is_plugins():
        return False
    from hivepipe.hook.plugin import has_nothing_to_do

    return has_nothing_to_do(name)


def is_plugins() -> bool:
    """Tell whether this process runs as a hook of the plugin (`hooks/plugin.sh`)."""
    return sys.argv[1:2] == ["plugin"]


def take_in(
    name: str, received: "Input", began_ns: int, exchange: "Exchange | None" = None
) -> Taken:
    """Process one event; return its answer, and the spool file to apply now or "".

    `began_ns` is the start of the hook on the monotonic clock. In the process `intake`, `exchange`
    sends the answer before the hand-over, unless the answer depends on it.
    """
    global keep, place_of_event
    event_time_ns = sender.time_ns()
    data = received.data
    keep = lambda: _plan_and_spool(parse_event(name, data[:LAST_BYTES]), event_time_ns)  # noqa: E731
    event = parse_event(name, data)
    keep = lambda: _plan_and_spool(event, event_time_ns)  # noqa: E731
    place_of_event = place = locate(event)
    if not _is_wanted(place):
        return _refusal(event, place), ""
    values, keyword_rules = _settings_of_files(place)
    settings.use(values)
    if event is None:
        what = "empty" if not data.strip() else "not an event that hivepipe knows"
        _log_problems(place, name, [f"{what} ({len(data)} bytes)", received.trouble])
        return NOTHING
    if event.session_id.startswith(PROBE):
        from hivepipe.hook.probe_event import hand_over_probe

        return NEUTRAL, hand_over_probe(event, place, event_time_ns)
    event.problems += [received.trouble] if received.trouble else []
    context = _context(event, event_time_ns, place)
    return _Intake(event, place, context, keyword_rules, exchange).answer_and_record(began_ns)


class _Intake:
    """One event, with the data that its answer depends on."""

    __slots__ = ("context", "event", "exchange", "place", "recalled", "rules", "watch")

    def __init__(
        self,
        event: Event,
        place: home.Place,
        context: job_plan.Context,
        rules: object,
        exchange: "Exchange | None",
    ) -> None:
        """`rules` are the keyword rules."""
        self.event, self.place, self.context = event, place, context
        self.rules, self.exchange = rules, exchange
        self.recalled = ""
        self.watch: WatchedEvent | None = None

    def answer_and_record(self, began_ns: int) -> Taken:
        """Hand the event's jobs over; return the answer.

        If the answer is known before the jobs are handed over, send it first.
        """
        event, place, context, exchange = self.event, self.place, self.context, self.exchange
        is_answered = exchange is not None and exchange.is_answered
        instance = None
        if exchange is None or not context.own_session or settings.environment("CLAUDE_ENV_FILE"):
            instance = _identify(context, event, place)
        self.recalled = _recalled(event, place, context)
        self.watch = watch = _watch(event, context, place)
        early = None
        if exchange and not is_answered:
            early = self._known_answer(exchange)
            if early is not None:
                exchange.answer_early(early)
        instance = instance or _identify(context, event, place)
        if instances.had_no_session(event, instance, place.home):
            return NOTHING
        _keep_identity(event, place, context)
        direct, note_result = self._record(instance, began_ns)
        if early is None and not is_answered and not sender.is_gone():
            early = self._answer(note_result)
            if exchange and watch and watch.verdict_note:
                exchange.answer_early(early, is_recorded=True)
        if watch and watch.verdict_note:
            from hivepipe.hook.verdict_answer import store_denial

            store_denial(watch, place, exchange.listed if exchange else None)
        return early or NEUTRAL, direct

    def _known_answer(self, exchange: "Exchange") -> bytes | None:
        """Return the hook's answer if it is known before the event is handed over, else None."""
        event, watch, verdict = self.event, self.watch, None
        if watch:
            from hivepipe.guard.check import early_verdict

            is_known, verdict = early_verdict(watch, exchange.listed)
            if not is_known:
                return None
        if verdict and watch:
            from hivepipe.hook.verdict_answer import reply

            return reply(watch, verdict, self.place)
        if isinstance(event, PreToolUse) or event.calls:
            return NEUTRAL
        try:
            return self._answer("")
        except OSError as error:  # for example a full disk: the event is recorded nevertheless
            log(self.place, event.name, kind_of(error))
            return NEUTRAL

    def _record(self, instance: "instances.Instance", began_ns: int) -> tuple[str, str]:
        """Hand the event's jobs over; return the spool file to apply now, and the note's result."""
        global keep
        event, place, context, watch = self.event, self.place, self.context, self.watch
        direct = note_result = ""
        planned = job_plan.plan(event, context)
        _log_problems(place, event.name, event.problems)
        if planned or watch:
            from hivepipe.hook.hand_over import hand_over

            messages = job_plan.encode(planned, event, context)
            note = watch.note() if watch else None
            time_ns = context.event_time_ns
            keep = lambda: _spool(place, time_ns, messages, note)  # noqa: E731
            if self.exchange and note:
                note = self.exchange.listed.asked_for(note)
            direct, note_result = hand_over(event.name, place, time_ns, messages, note, began_ns)
            if watch and self.exchange:
                note_result = self.exchange.listed.remember(watch, note_result)
            elif watch:
                from hivepipe.guard.client import record_elsewhere

                record_elsewhere(place.runtime)
        keep = None
        if context.shown:
            from hivepipe.hook.recall import note_shown

            note_shown(place.home, context)
        _keep_markers(event, place, instance, context)
        return direct, note_result

    def _answer(self, note_result: str) -> bytes:
        event, watch = self.event, self.watch
        if isinstance(event, UserPromptSubmit):
            return self._with_prompt(event)
        if event.name == "SessionStart":
            from hivepipe.hook.greeting import greeting

            return greeting(event, self.place, self.context, is_plugins())
        if watch and watch.may_be_answered(note_result):
            from hivepipe.guard.check import check

            verdict = check(watch, note_result)
            if verdict:
                from hivepipe.hook.verdict_answer import reply

                return reply(watch, verdict, self.place)
        return NEUTRAL

    def _with_prompt(self, event: UserPromptSubmit) -> bytes:
        """Return the answer that adds text to a prompt, or b"" if there is no text.

        The text consists of the notice about a cancelled task, texts by keyword, and memories.
        """
        texts, watch = [], self.watch
        if watch and watch.may_be_answered():
            from hivepipe.guard.check import check

            verdict = check(watch, "")
            if verdict:
                from hivepipe.hook.verdict_answer import prompt_notice

                texts.append(prompt_notice(watch, verdict))
        if self.rules and event.is_users:
            from hivepipe.hook.keywords import keyword_texts

            texts.append(keyword_texts(self.rules, event.whole_prompt))
        text = "\n\n".join([part for part in [*texts, self.recalled] if part])
        if not text:
            return b""
        from hivepipe.hook import answers

        return answers.context(event.name, text)


def _recalled(event: Event, place: home.Place, context: job_plan.Context) -> str:
    """Return the memories for this event as text, or ""."""
    if not context.wants_memories or event.name not in ("SessionStart", "UserPromptSubmit"):
        return ""
    from hivepipe.hook.recall import recalled_text

    return recalled_text(event, place.home, context)


def _log_problems(place: home.Place, name: str, problems: list[str]) -> None:
    """Log up to five problems, each once, in order."""
    if known := [text for text in dict.fromkeys(problems) if text]:
        log(place, name, "; ".join(known[:5]))


def _is_wanted(place: home.Place) -> bool:
    """Tell whether events are recorded here.

    They are not if the project is off, or if root would write into another user's home. In CI and
    the cloud, a record, HIVEPIPE_HOME or HIVEPIPE_AUTOSTART must ask for it.
    """
    if place.state == "off" or home.owner_over_root(place.home):
        return False
    is_requested = place.python or settings.environment("HIVEPIPE_HOME")
    return (
        bool(is_requested or settings.switched_on("HIVEPIPE_AUTOSTART"))
        or not settings.on_ephemeral_machine()
    )


def _refusal(event: Event | None, place: home.Place) -> bytes:
    """Return the answer to an event that is not recorded.

    The answer to a session's start warns root in a home of another user. Other answers are empty.
    """
    is_start = event is not None and event.name == "SessionStart"
    if not is_start or place.state == "off" or not home.owner_over_root(place.home):
        return NEUTRAL
    from hivepipe.hook import answers

    text = "hivepipe records nothing: root runs this session, and"
    from hivepipe.text.visible import printable

    return answers.message(f"{text} {printable(place.home)} belongs to another user")


def locate(event: Event | None) -> home.Place:
    """Return the paths sent with the event, else the paths of CLAUDE_PROJECT_DIR or the cwd."""
    found = sender.place()
    if found:
        project, folder, record = found
        return home.Place(project, folder, home.parse_record(record))
    return home.locate_for_hook(
        settings.variable("CLAUDE_PROJECT_DIR") or (event.cwd if event else "") or "."
    )


def _plan_and_spool(event: Event | None, event_time_ns: int) -> None:
    """Plan the event again and spool it without Redis, because the deadline has passed."""
    place = locate(event)
    if event is not None and not event.session_id.startswith(PROBE) and _is_wanted(place):
        from hivepipe.hook import throttle

        throttle.LOCK_SECS = LAST_LOCK_SECS
        settings.use(_settings_of_files(place)[0])
        context = _context(event, event_time_ns, place)
        _identify(context, event, place)
        messages = job_plan.encode(job_plan.plan(event, context), event, context)
        _spool(place, event_time_ns, messages, None)  # no note, because hashing takes too long


def _spool(
    place: home.Place, event_time_ns: int, messages: list[job_plan.Message], note: "Note | None"
) -> None:
    from hivepipe.queue.spool import keep_event

    keep_event(place, event_time_ns + 1, messages, note)  # a name other than the interrupted file's
    # The deadline may have interrupted the writing of this file.
    instances.remove(f"{place.home}/spool/{event_time_ns:020d}_{sender.pid()}.json.tmp")


def _watch(event: Event, context: job_plan.Context, place: home.Place) -> "WatchedEvent | None":
    """Return the event as the guard records it, or None if the guard ignores the event."""
    if not context.own_session or not event.is_activity:
        return None
    from hivepipe.guard.client import WatchedEvent

    if not isinstance(event, PreToolUse):
        return WatchedEvent(event, context, place.home)
    from hivepipe.guard.check import kind_of_call

    return WatchedEvent(event, context, place.home, kind_of_call(event))


def _settings_of_files(place: home.Place) -> tuple[dict[str, str], object]:
    """Return the settings of the config files, as compiled for hooks, and the keyword rules."""
    path = f"{place.home}/hook-settings.json"
    if not posix.access(path, posix.F_OK):
        return {}, None
    from hivepipe.hook.compiled_settings import compiled_settings

    return compiled_settings(path, place.project)


def _context(event: Event, event_time_ns: int, place: home.Place) -> job_plan.Context:
    """Return the part of the context that answers depend on; `_identify` adds the rest."""
    joined = valid_id(settings.of_this_process("HIVEPIPE_SESSION_ID") or "")
    profile = valid_id(settings.variable("HIVEPIPE_AGENT_ID") or "")
    return job_plan.Context(
        event_time_ns=event_time_ns,
        own_session=joined or event.session_id,
        project=place.project,
        cwd=event.cwd,
        swarm=valid_id(settings.variable("HIVEPIPE_SWARM_ID") or "")
        or f"swarm-{home.short_hash(place.project)}",
        claude_folder=settings.variable(event.folder_variable) or "",
        profile=profile,
        profile_folder=_profile_folder(place, profile),
        task=_task(place),
        wants_memories=settings.means_yes(settings.of_files("HIVEPIPE_MEMORY_RECALL") or ""),
    )


def _identify(context: job_plan.Context, event: Event, place: home.Place) -> "instances.Instance":
    """Add the process, its session and its operation count to the context; return the process."""
    instance = instances.identify(context, event, place.home)
    if not instances.had_no_session(event, instance, place.home):
        context.count = _count(event, context.session, context.event_time_ns, place, instance)
    return instance


def _profile_folder(place: home.Place, profile: str) -> str:
    """Return the folder of a profile's files, or "" without a profile."""
    if not profile:
        return ""
    named = settings.of_files("HIVEPIPE_PROFILE_DIR")
    return home.real_path(home.absolute(named) if named else f"{place.home}/profiles/{profile}")


def _keep_identity(event: Event, place: home.Place, context: job_plan.Context) -> None:
    """Snapshot an identity file that this call changed.

    The file's folder and the profile's folder are compared by their resolved paths.
    """
    if not context.profile or not isinstance(event, PostToolUse) or event.tool not in EDIT_TOOLS:
        return
    folder, _, name = event.file_path.rpartition("/")
    if name in IDENTITY_FILES and home.real_path(folder) == context.profile_folder:
        from hivepipe.hook.identity_snapshots import keep

        context.snapshot = keep(place.home, event.file_path, context.event_time_ns)


def _task(place: home.Place) -> str:
    """Return the task that the environment names, or "".

    A task that was assigned later is in the store.
    """
    named = settings.variable("HIVEPIPE_TASK_ID") or settings.variable("HIVEPIPE_TASK_FILE")
    if not named:
        return ""
    from hivepipe.guard.client import task_of

    return task_of(place.home, "")


def _count(
    event: Event, session: str, event_time_ns: int, place: home.Place, instance: instances.Instance
) -> job_plan.Count:
    counts = job_plan.is_operation(event)
    if not counts and event.name not in ("Stop", "StopFailure", "SessionEnd"):
        return job_plan.NOT_COUNTED
    global take_back
    from hivepipe.hook import throttle

    path = f"{place.home}/instances/{instance.key}.checkpoint"
    name = f"{instance.id}:{session}"
    if not counts:
        return throttle.report_totals(path, name, event_time_ns)
    keys = job_plan.event_keys(event, session, instance.id, event_time_ns)
    take_back = lambda: throttle.take_back(path, name, keys)  # noqa: E731
    interval_ns = int(settings.number("HIVEPIPE_CHECKPOINT_INTERVAL") * 1e9)
    return throttle.count_operation(path, name, keys, event_time_ns, interval_ns)


def _keep_markers(
    event: Event, place: home.Place, instance: instances.Instance, context: job_plan.Context
) -> None:
    """At a session's start, end or first event, update the instance's marker files."""
    try:
        if event.name == "SessionEnd":
            instances.forget(place.home, instance, context.session)
        elif context.enters_session or event.name == "SessionStart":
            instances.remember(place.home, instance, context.session, is_plugins())
    except OSError as error:
        log(place, event.name, f"instance marker: {kind_of(error)}")


def log(place: home.Place, name: str, message: str) -> None:
    from hivepipe.files.hook_log import log_line

    log_line(place.logs, name, "ERROR", message)


def kind_of(error: BaseException) -> str:
    """Return the kind of an error without its text, which may contain user data."""
    number = getattr(error, "errno", None)
    return posix.strerror(number) if number else type(error).__name__
