"""The main function of every hook: read, plan, hand over, answer.

Three guarantees: a hook prints nothing unless it has an answer; the exit code is 0 and stderr stays
empty in every case; it ends within a second, not counting time in which it waited for a CPU.

A module that few events need is imported where they need it (docs/decisions.md, 4).
"""
# ruff: noqa: PLC0415

import posix
import sys
import time
from _signal import ITIMER_REAL, SIG_IGN, SIGALRM, SIGHUP, SIGINT, SIGTERM, setitimer, signal

from hivepipe import home, settings
from hivepipe.events import claude_code, job_plan, parse_event
from hivepipe.events.claude_code import (
    EDIT_TOOLS,
    IDENTITY_FILES,
    PROBE,
    Event,
    PostToolUse,
    PreToolUse,
    UserPromptSubmit,
    clean,
    valid_id,
)
from hivepipe.hook import instance as instances
from hivepipe.hook import stdin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hivepipe.guard.client import Note, Watch

STDIN_SECS = 0.4
HARD_STOP_SECS = 0.8
LAST_SECS = 0.2  # after the hard stop, to spool the event and write the log line
LAST_BYTES = 1 << 20  # of an event so large that parsing it took all the time
WAITING_SHARE = 0.3
MOST_GAINS = 4  # Claude Code ends a hook after 5 s; the last one is kept for the disk
SETTINGS_BYTES = 1 << 20
_UNASKED = ("", "", "")
NEUTRAL = b""  # Claude Code shows what a hook prints


def run(name: str) -> None:
    """Handle one event of this name and end the process."""
    global _began_ns
    _began_ns = instances.own_start_ns()
    answer = NEUTRAL
    # A Claude Code that is ended ends its hooks by SIGTERM, a second before it kills them.
    for number in (SIGHUP, SIGINT, SIGTERM):
        signal(number, SIG_IGN)
    claude_code.scan_without_json()
    posix.umask(0o077)  # a mask that excludes the owner would make an unreadable spool
    try:
        if not (
            settings.switched_on("HIVEPIPE_DISABLED")
            or settings.switched_on("HIVEPIPE_NESTED")
            or (_is_plugins() and _has_nothing_to_do(name))
        ):
            answer = _take_in(name, _read())
    except BaseException as error:  # noqa: BLE001  a hook fails open, and the log says how
        _keep_after(name, _kind(error))
    _answer_and_end(answer)


def _is_plugins() -> bool:
    """Tell whether this runs as a hook of the plugin (`hooks/plugin.sh`)."""
    return sys.argv[1:2] == ["plugin"]


def _has_nothing_to_do(name: str) -> bool:
    from hivepipe.hook.plugin import has_nothing_to_do

    return has_nothing_to_do(name)


def _answer_and_end(answer: bytes) -> None:
    """Write the answer and end at once: the normal interpreter exit costs another 1 ms."""
    try:
        _answer(answer)
    finally:
        posix._exit(0)


def _answer(answer: bytes) -> None:
    """Write the answer; the alarm is cancelled first, because its handler could answer, too."""
    setitimer(ITIMER_REAL, 0)
    if answer:
        posix.write(1, answer)


def _read() -> stdin.Input:
    """Read the event under its own deadline; the rest of the second remains for the other steps.

    Extending the deadline takes nothing from the rest.
    """
    began = time.monotonic()
    signal(SIGALRM, _stop_waiting)
    # Repeated: the first alarm may arrive between Python's check for signals and its read.
    setitimer(ITIMER_REAL, STDIN_SECS, STDIN_SECS / 8)
    received = stdin.read_event()
    signal(SIGALRM, _stop_hard)
    ends = began + HARD_STOP_SECS + _gains * STDIN_SECS
    setitimer(ITIMER_REAL, max(ends - time.monotonic(), 0.001))
    return received


def _stop_waiting(*_signal: object) -> None:
    if not _gains_time(STDIN_SECS, MOST_GAINS - 1):
        stdin.stop_waiting()


_began_ns = 0  # by the monotonic clock
_waited_ns = 0  # for a CPU, up to the last deadline
_gains = 0


def _gains_time(secs: float, most_gains: int) -> bool:
    """Extend the deadline if the time was spent waiting for a CPU; return whether it was extended.

    A deadline is meant for operations that hang. On an overloaded machine a hook that gets no CPU
    time would lose its event.
    """
    global _waited_ns, _gains
    waited_ns = instances.waited_for_cpu()
    if waited_ns is None:
        return False
    waited_ns, _waited_ns = waited_ns - _waited_ns, waited_ns
    if waited_ns < secs * WAITING_SHARE * 1e9 or _gains >= most_gains:
        return False
    _gains += 1
    setitimer(ITIMER_REAL, secs, secs / 8)
    return True


_keep: "Callable[[], object] | None" = None  # spools the event; None: the event is safe
_place: "home.Place | None" = None  # of the event, once known
_came_at_ns = 0


def _stop_hard(*_signal: object) -> None:
    """Spool the event, log a line and end; if the disk hangs too, end without.

    An event that is spooled here is not counted as a call, and the guard does not see it.
    """
    if _gains_time(HARD_STOP_SECS - STDIN_SECS, MOST_GAINS - 1):
        return
    signal(SIGALRM, _stop_at_last)
    setitimer(ITIMER_REAL, LAST_SECS)
    try:
        _keep_after("hook", "out of time")
    finally:
        posix._exit(0)


def _keep_after(name: str, failure: str) -> None:
    """Spool the event if it is not safe yet; count it as lost if that fails."""
    if _keep is None:
        return _log_failure(name, failure)
    try:
        _keep()
        _log_failure(name, f"{failure}; the event is kept")
    except BaseException:  # noqa: BLE001  whatever it is, this is the end
        _count_lost()
        _log_failure(name, f"{failure}; the event is lost")


def _count_lost() -> None:
    from hivepipe.queue.spool import count_lost

    count_lost(_place or _locate(None), _came_at_ns)


def _stop_at_last(*_signal: object) -> None:
    if not _gains_time(LAST_SECS, MOST_GAINS):
        posix._exit(0)


def _take_in(name: str, received: stdin.Input) -> bytes:
    """Process the event and return the answer."""
    global _keep, _place, _came_at_ns
    _came_at_ns = event_time_ns = time.time_ns()
    data = received.data
    _keep = lambda: _plan_and_spool(parse_event(name, data[:LAST_BYTES]), event_time_ns)  # noqa: E731
    event = parse_event(name, data)
    _keep = lambda: _plan_and_spool(event, event_time_ns)  # noqa: E731
    _place = place = _locate(event)
    if not _is_wanted(place):
        return _refusal(event, place)
    values, keyword_rules = _settings_of_files(place)
    settings.use(values)
    if event is None:
        what = "empty" if not data.strip() else "not an event that hivepipe knows"
        _log_problems(place, name, [f"{what} ({len(data)} bytes)", received.trouble])
        return NEUTRAL
    if event.session_id.startswith(PROBE):
        from hivepipe.hook.probe_event import hand_over_probe

        hand_over_probe(event, place, event_time_ns)
        return NEUTRAL
    instance = instances.this_instance(place.home)
    if instances.had_no_session(event, instance):
        return NEUTRAL
    return _record(event, place, instance, keyword_rules, received.trouble)


def _record(
    event: Event,
    place: home.Place,
    instance: "instances.Instance",
    rules: object,
    trouble: str,
) -> bytes:
    """Hand the event's jobs over and return the answer."""
    global _keep
    event_time_ns = _came_at_ns
    context = _context(event, event_time_ns, place, instance)
    _keep_identity(event, place, context)
    recalled = _recall(event, place, context) if context.wants_memories else ""
    direct = note_result = ""
    planned = job_plan.plan(event, context)
    watch = _watch(event, context, place)
    _log_problems(place, event.name, [*event.problems, trouble])
    if planned or watch:
        from hivepipe.hook.hand_over import apply_and_end, hand_over

        messages = job_plan.encode(planned, event, context)
        note = watch.note() if watch else None
        _keep = lambda: _spool(place, event_time_ns, messages, note)  # noqa: E731
        direct, note_result = hand_over(event.name, place, event_time_ns, messages, note, _began_ns)
    _keep = None
    _keep_markers(event, place, instance, context)
    if isinstance(event, UserPromptSubmit):
        answer = _with_prompt(event, watch, rules, recalled)
    elif event.name == "SessionStart":
        from hivepipe.hook.greeting import greeting

        answer = greeting(event, place, context, _unfinished(place))
    elif watch and watch.may_be_answered(note_result):
        answer = _judged(watch, note_result, place)
    else:
        answer = NEUTRAL
    if direct:
        _answer(answer)
        apply_and_end(event.name, place, direct)
    return answer


def _log_problems(place: home.Place, name: str, problems: list[str]) -> None:
    """Log up to five problems, each once, in order."""
    if known := [text for text in dict.fromkeys(problems) if text]:
        _log(place, name, "; ".join(known[:5]))


def _is_wanted(place: home.Place) -> bool:
    """Tell whether events are recorded here; in CI and cloud environments only on request."""
    if place.state == "off" or home.owner_over_root(place.home):
        return False
    is_requested = place.python or settings.environment("HIVEPIPE_HOME")
    return (
        bool(is_requested or settings.switched_on("HIVEPIPE_AUTOSTART"))
        or not settings.on_a_passing_machine()
    )


def _refusal(event: Event | None, place: home.Place) -> bytes:
    """Return the answer without a record: a message if root runs in another user's home."""
    is_start = event is not None and event.name == "SessionStart"
    if not is_start or place.state == "off" or not home.owner_over_root(place.home):
        return NEUTRAL
    from hivepipe.hook import answers

    text = "hivepipe records nothing: root runs this session, and"
    from hivepipe.text.visible import printable

    return answers.message(f"{text} {printable(place.home)} belongs to another user")


def _locate(event: Event | None) -> home.Place:
    return home.locate_for_hook(
        settings.variable("CLAUDE_PROJECT_DIR") or (event.cwd if event else "") or "."
    )


def _plan_and_spool(event: Event | None, event_time_ns: int) -> None:
    """Plan the event again and spool it, without contacting Redis: the time is over."""
    place = _locate(event)
    if event is not None and not event.session_id.startswith(PROBE) and _is_wanted(place):
        from hivepipe.hook import throttle

        throttle.LOCK_SECS = LAST_SECS / 4
        settings.use(_settings_of_files(place)[0])
        instance = instances.this_instance(place.home)
        context = _context(event, event_time_ns, place, instance)
        messages = job_plan.encode(job_plan.plan(event, context), event, context)
        _spool(place, event_time_ns, messages, None)  # no note: hashing takes too long


def _spool(
    place: home.Place, event_time_ns: int, messages: list[job_plan.Message], note: "Note | None"
) -> None:
    from hivepipe.queue.spool import keep_event

    keep_event(place, event_time_ns + 1, messages, note)  # not the name of the interrupted file
    try:  # the file that was being written at the deadline
        posix.unlink(f"{place.home}/spool/{event_time_ns:020d}_{posix.getpid()}.json.tmp")
    except OSError:
        return


def _unfinished(place: home.Place) -> str:
    """Return the plugin's message about a missing package, or ""."""
    if not _is_plugins():
        return ""
    from hivepipe.hook.plugin import unfinished

    return unfinished(place)


def _recall(event: Event, place: home.Place, context: job_plan.Context) -> str:
    """Return the memories that match a prompt as text; also store them in the context."""
    if event.name not in ("SessionStart", "UserPromptSubmit"):
        return ""
    from hivepipe.hook import recall

    if not isinstance(event, UserPromptSubmit):
        recall.begin_anew(place.home, context.own_session)
        return ""
    if not event.is_users:
        return ""
    try:
        found = recall.recall(place.home, context, event.whole_prompt)
    except ValueError:  # hivepipe did not write the file
        return ""
    context.recalled = [
        {"name": memory.path.rpartition("/")[2], "text": memory.text} for memory in found
    ]
    return recall.in_words(found)


def _with_prompt(
    event: UserPromptSubmit, watch: "Watch | None", keyword_rules: object, recalled: str
) -> bytes:
    """Return the context for a prompt: a cancelled task, texts by keyword, memories."""
    texts = []
    if watch and watch.may_be_answered():
        from hivepipe.guard.check import check

        verdict = check(watch, "")
        if verdict:
            from hivepipe.hook.verdict_answer import prompt_notice

            texts.append(prompt_notice(watch, verdict))
    if keyword_rules and event.is_users:
        from hivepipe.hook.keywords import keyword_texts

        texts.append(keyword_texts(keyword_rules, event.whole_prompt))
    text = "\n\n".join([part for part in [*texts, recalled] if part])
    if not text:
        return b""
    from hivepipe.hook import answers

    return answers.context(event.name, text)


def _judged(watch: "Watch", note_result: str, place: home.Place) -> bytes:
    """Return the guard's answer to calls, or b""."""
    from hivepipe.guard.check import check

    verdict = check(watch, note_result)
    if verdict is None:
        return b""
    from hivepipe.hook.verdict_answer import reply

    return reply(watch, verdict, place)


def _watch(event: Event, context: job_plan.Context, place: home.Place) -> "Watch | None":
    """Return the guard's view of this event, or None if the guard ignores it."""
    if not context.own_session or not event.shows_life:
        return None
    from hivepipe.guard.client import Watch

    if not isinstance(event, PreToolUse):
        return Watch(event, context, place.home)
    from hivepipe.guard.check import kind_of_call

    return Watch(event, context, place.home, kind_of_call(event))


def _settings_of_files(place: home.Place) -> tuple[dict[str, str], object]:
    """Return the compiled settings of files, and the keyword rules."""
    text = home.read_small(f"{place.home}/hook-settings.json", SETTINGS_BYTES)
    if not text:
        return {}, None
    from hivepipe.hook.compiled_settings import compiled_settings

    return compiled_settings(text, place.project)


def _context(
    event: Event, event_time_ns: int, place: home.Place, instance: instances.Instance
) -> job_plan.Context:
    joined = valid_id(settings.of_this_process("HIVEPIPE_SESSION_ID") or "")
    profile = valid_id(settings.variable("HIVEPIPE_AGENT_ID") or "")
    own = joined or event.session_id or instance.session
    session = own or instances.marked_session(place.home, instance)
    newcomer = bool(own) and (own != instance.session or _comes_back(event, instance))
    return job_plan.Context(
        event_time_ns=event_time_ns,
        session=session,
        own_session=own,
        instance=instance.id,
        newcomer=newcomer,
        project=clean(place.project),
        cwd=event.cwd,
        swarm=valid_id(settings.variable("HIVEPIPE_SWARM_ID") or "")
        or f"swarm-{home.short_hash(place.project)}",
        task=_task(place),
        pid=instance.pid,
        pid_started=instance.started,
        machine=instances.this_machine() if newcomer or event.name == "SessionStart" else _UNASKED,
        count=_count(event, session, event_time_ns, place, instance),
        claude_folder=settings.variable(event.folder_variable) or "",
        profile=profile,
        profile_folder=_profile_folder(place, profile),
        wants_memories=settings.means_yes(settings.of_files("HIVEPIPE_MEMORY_RECALL") or ""),
    )


def _comes_back(event: Event, instance: instances.Instance) -> bool:
    """Tell whether this event follows its session's end; a second SessionEnd is a duplicate."""
    return instance.has_ended and event.name != "SessionEnd"


def _profile_folder(place: home.Place, profile: str) -> str:
    """Return the folder of a profile's files, or "" without a profile."""
    if not profile:
        return ""
    named = settings.of_files("HIVEPIPE_PROFILE_DIR")
    return home.real_path(home.absolute(named) if named else f"{place.home}/profiles/{profile}")


def _keep_identity(event: Event, place: home.Place, context: job_plan.Context) -> None:
    """Snapshot an identity file that this call changed, before it changes again.

    The resolved path of the folder is compared.
    """
    if not context.profile or not isinstance(event, PostToolUse) or event.tool not in EDIT_TOOLS:
        return
    folder, _, name = event.file_path.rpartition("/")
    if name in IDENTITY_FILES and home.real_path(folder) == context.profile_folder:
        from hivepipe.hook.identity_snapshots import keep

        context.snapshot = keep(place.home, event.file_path, context.event_time_ns)


def _task(place: home.Place) -> str:
    """Return the task that this process was started with; one assigned later is stored already."""
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
    from hivepipe.hook import throttle

    path = f"{place.home}/instances/{instance.key}.checkpoint"
    if not counts:
        return throttle.read_totals(path, session)
    keys = job_plan.event_keys(event, session, instance.id, event_time_ns)
    interval_ns = settings.checkpoint_interval_ns()
    return throttle.count_operation(path, session, keys, event_time_ns, interval_ns)


def _keep_markers(
    event: Event, place: home.Place, instance: instances.Instance, context: job_plan.Context
) -> None:
    """Update the markers after the hand-over, when the session's own upsert is enqueued."""
    try:
        if event.name == "SessionEnd":
            instances.forget(place.home, instance, context.session)
        elif context.newcomer or event.name == "SessionStart":
            instances.remember(place.home, instance, context.session, _is_plugins())
    except OSError as error:
        _log(place, event.name, f"instance marker: {_kind(error)}")


def _log(place: home.Place, name: str, message: str) -> None:
    from hivepipe.files.hook_log import log_line

    log_line(place.logs, name, "ERROR", message)


def _log_failure(name: str, what: str) -> None:
    """Log the failure in the home that this event belongs to."""
    try:
        _log(_locate(None), name, what)
    except BaseException:  # noqa: BLE001  there is nobody left to tell
        return


def _kind(error: BaseException) -> str:
    """Return the kind of an error without its text, which may contain user data."""
    number = getattr(error, "errno", None)
    return posix.strerror(number) if number else type(error).__name__
