/* What Claude Code runs on every event: `hook [EVENT]`. docs/architecture.md, "The way of an event".

   It reads the event, sends it to the intake of the project's stack and prints the answer. Without
   an intake it writes the same bytes to the spool. It knows no rules and parses no JSON: the
   Python hook beside it, `hook.py`, does everything else. */

#ifdef __linux__
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#else
#include <sys/auxv.h>
#endif

#include "blake2b.h"

enum {
    MOST_INPUT = 64 << 20,
    LATE_INPUT = 1 << 20,  /* bytes read after the deadline: all of a pipe, not of a large file */
    MOST_SENT = 1 << 20,   /* the Python hook takes larger events, and all special cases */
    MOST_ANSWER = 1 << 20,
    PATH_BYTES = 1024, /* length of a path; the Python hook takes longer ones */
    RECORD_BYTES = 4096,
    HEAD_BYTES = 1 << 16,
    STDIN_MS = 400,
    LATE_STDIN_MS = 10000, /* in the background */
    ANSWER_MS = 400,
    DISK_MS = 250, /* time between two alarms; the second one ends the process */
    HANGS_SECS = 5,
    WAITING_SECS = 600, /* a raw event that has waited longer cannot be converted */
    MOST_GAINS = 4, /* extensions of a deadline */
    ANCESTORS = 5,
};

extern char **environ;

/* A frame (hivepipe/hook/frame.py): the head ends where the event begins. */
static char frame[HEAD_BYTES + MOST_SENT + 1];
static char *input = frame + HEAD_BYTES;
static size_t room = MOST_SENT + 1; /* bytes that `input` can hold */
static char *start_of_frame;
static size_t frame_size;
static char answer[MOST_ANSWER];
static size_t input_size;
static const char *trouble = "";
static char head[HEAD_BYTES];
static size_t head_size;
static int head_is_full;

static const char *own_folder = ""; /* folder of this program */
static char here[4096];             /* the working directory at the start; PATH_MAX of Linux */
static char home_[PATH_BYTES], runtime[PATH_BYTES];
static char checkout[PATH_BYTES];     /* the registered folder, or the folder of the event */
static char record[RECORD_BYTES + 1]; /* record of the home */
static char redis_socket[PATH_BYTES]; /* socket of the project's own Redis, or "" */
static char **arguments;
static const char *event = "";
static int is_status_line; /* the intake or the Python hook answers a status line */
static int to_intake = -1; /* connection */
static int is_late;        /* Claude Code no longer waits for this process */

/* ---- time */

static int64_t now_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static int left_ms(int64_t end_ns) {
    int64_t left = (end_ns - now_ns(CLOCK_MONOTONIC)) / 1000000;
    return left > 0 ? (int)left : 0;
}

static ssize_t read_small(const char *path, char *text, size_t limit) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return -1;
    ssize_t size = read(file, text, limit - 1);
    close(file);
    text[size > 0 ? size : 0] = 0;
    return size;
}

/* Tell whether the process has waited so long for a processor that its deadline is extended. */
static int was_starved(int ms) {
    static int64_t before;
    static int gains;
    char text[100];
    if (read_small("/proc/thread-self/schedstat", text, sizeof text) <= 0) return 0;
    char *second = strchr(text, ' ');
    int64_t waited = second ? strtoll(second, NULL, 10) : 0;
    int64_t recently = waited - before;
    before = waited;
    return recently >= (int64_t)ms * 300000 && gains++ < MOST_GAINS;
}

/* End the process at the second alarm. One slow call to the disk may cause the first. */
static void stop_hard(int number) {
    static int alarms;
    (void)number;
    if (alarms++ && !was_starved(DISK_MS)) _exit(0);
}

static void limit_time(int ms) {
    struct itimerval timer = {{ms / 1000, ms % 1000 * 1000}, {ms / 1000, ms % 1000 * 1000}};
    signal(SIGALRM, stop_hard);
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* ---- the Python hook */

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static int wait_for(int file, short what, int64_t end) {
    struct pollfd waiting = {.fd = file, .events = what};
    int ms = left_ms(end);
    return ms > 0 && (poll(&waiting, 1, ms) >= 0 || errno == EINTR);
}

/* Write all bytes; return 0 on failure. A nonblocking descriptor is waited for until `end`. */
static int write_all(int file, const char *data, size_t size, int64_t end) {
    while (size) {
        ssize_t written = write(file, data, size);
        if (written == 0 || (written < 0 && errno != EINTR && errno != EAGAIN)) return 0;
        if (written < 0 && errno == EAGAIN && !wait_for(file, POLLOUT, end)) return 0;
        if (written > 0) data += written, size -= (size_t)written;
    }
    return 1;
}

/* Give the event back on stdin, through a pipe: a file may be limited (ulimit -f). A child writes
   the bytes that do not fit into the pipe. Without a child (ulimit -u) the event goes through a
   file. */
static void give_back_input(void) {
    int ends[2];
    if (pipe(ends)) return;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    ssize_t held = write(ends[1], input, input_size);
    size_t done = held > 0 ? (size_t)held : 0;
    pid_t child = done < input_size ? fork() : 1;
    if (child == 0) {
        close(ends[0]);
        fcntl(ends[1], F_SETFL, 0);
        write_all(ends[1], input + done, input_size - done, 0);
        _exit(0);
    }
    FILE *file = child < 0 ? tmpfile() : NULL;
    int is_written = file && write_all(fileno(file), input, input_size, 0);
    if (is_written) rewind(file);
    dup2(is_written ? fileno(file) : ends[0], 0);
    close(ends[0]);
    close(ends[1]);
}

static int spool(void);

static void become_python(void) {
    static char program[4096]; /* static, because this function is inlined into all its callers */
    limit_time(0);
    signal(SIGALRM, SIG_DFL);
    if (input_size) give_back_input();
    if (here[0] && chdir(here)) here[0] = 0;
    snprintf(program, sizeof program, "%s/hook.py", own_folder);
    execv(program, arguments);
    /* Python was removed: the event waits until it is installed again. */
    limit_time(DISK_MS);
    int is_kept = frame_size && !is_status_line && spool();
    /* One report per turn is enough, and some programs take exit code 1 as a denial. */
    if (strcmp(event, "session_start") && strcmp(event, "stop")) _exit(0);
    dprintf(2, "hivepipe %s (its hook is incomplete): run `hivepipe init`\n",
            is_kept ? "keeps events on disk" : "records nothing");
    _exit(1);
}

/* Join two texts and return the path. If it is too long, become the Python hook. */
static char *join(char *path, const char *first, const char *second) {
    if (snprintf(path, PATH_BYTES, "%s%s", first, second) >= PATH_BYTES) become_python();
    return path;
}

/* ---- the registration record */

/* Resolve an absolute path as the kernel does; a missing folder keeps its name. */
static int real_path(const char *path, char *real) {
    if (path[0] != '/') return 0;
    if (chdir(path) == 0) return getcwd(real, PATH_BYTES) != NULL && real[0] == '/';
    join(real, path, "");
    for (size_t end = strlen(real); end > 1 && real[end - 1] == '/';) real[--end] = 0;
    return 1;
}

/* Copy the value of a field, or "". If it is too long, become the Python hook. */
static void field(const char *name, char *value, size_t limit) {
    size_t size = strlen(name);
    value[0] = 0;
    for (const char *line = record; line && *line;) {
        const char *end = strchr(line, '\n');
        size_t length = end ? (size_t)(end - line) : strlen(line);
        if (length > size && line[size] == '=' && !memcmp(line, name, size)) {
            if (length - size > limit) become_python();
            memcpy(value, line + size + 1, length - size - 1);
            value[length - size - 1] = 0;
        }
        line = end ? end + 1 : NULL;
    }
}

static char state_folder[PATH_BYTES];

static int read_record(const char *folder) {
    char path[PATH_BYTES], name[10 + 17] = "/projects/";
    blake2b_hex(folder, strlen(folder), name + 10);
    join(path, state_folder, name);
    return read_small(path, record, sizeof record) > 0 && strchr(record, '=') != NULL;
}

/* Read the nearest record of a folder and the folders above it, up to `top`. */
static int nearest_record(const char *folder, const char *top) {
    char path[PATH_BYTES];
    join(path, folder, "");
    for (; path[0]; *strrchr(path, '/') = 0) {
        if (read_record(path)) return join(checkout, path, "") != NULL;
        if (!strcmp(path, top)) return 0;
    }
    return 0;
}

/* Resolve a path in git's form: absolute, or relative to a folder. */
static char *resolve(const char *folder, char *link, char *real) {
    char base[PATH_BYTES], path[PATH_BYTES];
    for (size_t end = strlen(link); end && strchr(" \t\r\n", link[end - 1]);) link[--end] = 0;
    join(path, link[0] == '/' ? "" : join(base, folder, "/"), link);
    if (!real_path(path, real)) become_python();
    return real;
}

/* Find the linked worktree of a folder: its top and its main checkout. The link is trusted only if
   the main checkout points back. */
static int linked_worktree(const char *root, char *top, char *main_checkout) {
    char path[PATH_BYTES], link[RECORD_BYTES + 1], inner[PATH_BYTES], back[PATH_BYTES];
    join(top, root, "");
    for (; top[0]; *strrchr(top, '/') = 0) {
        if (read_small(join(path, top, "/.git"), link, sizeof link) <= 8) continue;
        if (strncmp(link, "gitdir: ", 8)) continue;
        char *end = NULL;
        resolve(top, link + 8, inner);
        for (char *at = inner; (at = strstr(at, "/.git/worktrees/")); at++) end = at;
        if (!end || read_small(join(path, inner, "/gitdir"), link, sizeof link) <= 5) return 0;
        for (size_t size = strlen(link); size && link[size - 1] == '\n';) link[--size] = 0;
        size_t size = strlen(link);
        if (size > 5 && !strcmp(link + size - 5, "/.git")) link[size - 5] = 0;
        if (strcmp(resolve(inner, link, back), top)) return 0;
        *end = 0;
        return join(main_checkout, inner, "")[0] != 0;
    }
    return 0;
}

static int find_record(const char *root) {
    char top[PATH_BYTES], main_checkout[PATH_BYTES];
    join(checkout, root, "");
    if (read_record(root)) return 1; /* a linked worktree may have a record of its own */
    if (!linked_worktree(root, top, main_checkout)) return nearest_record(root, "");
    join(checkout, main_checkout, "");
    return nearest_record(root, top) || nearest_record(main_checkout, "") || nearest_record(top, "");
}

/* Tell whether the record has this state; the default is "on". */
static int has_state(const char *state) {
    char value[16];
    field("state", value, sizeof value);
    return !strcmp(value[0] ? value : "on", state);
}

/* End if the project is off. For a status line, the Python hook finds the project in the JSON. */
static int leave_if_off(void) {
    if (has_state("off") && !is_status_line) _exit(0);
    return has_state("off");
}

/* Find home and runtime folder; return 0 if only the Python hook can find them. */
static int locate(void) {
    char path[PATH_BYTES];
    const char *named = variable("HIVEPIPE_HOME");
    if (!real_path(is_status_line ? here : variable("CLAUDE_PROJECT_DIR"), path)) return 0;
    int is_known = find_record(path);
    if (is_known && leave_if_off()) return 0;
    if (named[0]) {
        if (!real_path(named, path) || !read_record(path)) return 0;
    } else if (!is_known) {
        if (!read_record(join(path, state_folder, "/default"))) return 0;
    } else {
        path[0] = 0;
    }
    if (leave_if_off()) return 0;
    field("home", home_, PATH_BYTES);
    if (!home_[0]) memcpy(home_, path, PATH_BYTES);
    field("runtime", runtime, PATH_BYTES);
    field("socket", redis_socket, PATH_BYTES);
    if (redis_socket[0] != '/') redis_socket[0] = 0;
    field("python", path, PATH_BYTES);
    struct stat status;
    if (geteuid() == 0 && (stat(home_, &status) || status.st_uid != 0)) return 0;
    size_t size = strlen(home_);
    int is_in_project = size >= 11 && !strcmp(home_ + size - 11, "/.hive-mind");
    return has_state("on") && path[0] && home_[0] == '/' && runtime[0] == '/' && !is_in_project;
}

/* ---- the event */

/* Tell whether the bytes so far are one JSON object: the braces outside of strings are closed. */
static int is_whole(size_t from) {
    static long opened, closed;
    static int in_string, is_escaped;
    for (size_t at = from; at < input_size; at++) {
        char c = input[at];
        if (is_escaped) is_escaped = 0;
        else if (c == '\\') is_escaped = 1;
        else if (c == '"') in_string = !in_string;
        else if (!in_string && c == '{') opened++;
        else if (!in_string && c == '}') closed++;
    }
    size_t end = input_size;
    while (end > from && strchr(" \t\n\r\v\f", input[end - 1])) end--;
    return end > from && input[end - 1] == '}' && !in_string && opened == closed && closed > 0;
}

/* Take more memory only when it is needed, because it may be limited (ulimit -v). */
static int has_room(void) {
    if (input_size < room) return 1;
    char *larger = malloc(HEAD_BYTES + 8 * room);
    if (!larger) return 0;
    input = memcpy(larger + HEAD_BYTES, input, input_size);
    room *= 8;
    return 1;
}

/* End the hook in time, but let a child wait for the event: on a busy machine Claude Code may
   need long to send it. Return 1 in the child. */
static int wait_in_background(void) {
    struct stat status;
    int is_pipe = fstat(0, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
    pid_t child = is_pipe && !is_late && !is_status_line ? fork() : -1;
    if (child > 0) _exit(0);
    if (child < 0) return 0;
    is_late = 1;
    setsid();
    /* Claude Code waits until nobody has the other end of its pipes. */
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nothing, 1);
    dup2(nothing, 2);
    if (to_intake >= 0) close(to_intake);
    to_intake = -1;
    return 1;
}

/* Read the event, limited in time and size, without waiting for the end of the file: if
   nothing more has arrived, a whole JSON object is enough. */
static void read_input(void) {
    int64_t end = now_ns(CLOCK_MONOTONIC) + STDIN_MS * 1000000LL;
    size_t late = 0, searched = 0;
    struct pollfd stdin_ = {.fd = 0, .events = POLLIN};
    while (late < LATE_INPUT) {
        int ms = left_ms(end);
        int ready = poll(&stdin_, 1, 0);
        if (ready == 0 && searched < input_size) {
            if (is_whole(searched)) return;
            searched = input_size;
        }
        if (ready == 0) ready = poll(&stdin_, 1, ms);
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0 && ms == 0 && was_starved(STDIN_MS)) {
            end = now_ns(CLOCK_MONOTONIC) + STDIN_MS * 1000000LL;
            continue;
        }
        if (ready == 0 && ms > 0) continue;
        if (ready == 0 && wait_in_background()) {
            end = now_ns(CLOCK_MONOTONIC) + LATE_STDIN_MS * 1000000LL;
            continue;
        }
        if (ready == 0) break;
        if (!has_room()) {
            trouble = "no memory for an event of this size";
            return;
        }
        ssize_t size = read(0, input + input_size, room - input_size);
        if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (size < 0) trouble = "stdin could not be read";
        if (size <= 0) return;
        input_size += (size_t)size;
        if (input_size > MOST_INPUT) {
            trouble = "event larger than 64 MB";
            return;
        }
        if (ms == 0) late += (size_t)size;
    }
    trouble = "stdin was not closed in time";
}

/* ---- the head of a frame: name=value, ended by NUL */

static void add(const char *name, const char *value) {
    size_t a = strlen(name), b = strlen(value);
    if (head_size + a + b + 2 > HEAD_BYTES) {
        head_is_full = 1;
        return;
    }
    memcpy(head + head_size, name, a);
    head[head_size + a] = '=';
    memcpy(head + head_size + a + 1, value, b + 1);
    head_size += a + b + 2;
}

static void add_number(const char *name, int64_t number) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    add(name, text);
}

/* The variables that the intake reads; tests/unit/test_passed_on.py compares them. */
static const char *const wanted[] = {
    "HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "CI", "CODEX_HOME",
    "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_REMOTE", "CLAUDE_CONFIG_DIR", "CLAUDE_ENV_FILE",
    "CLAUDE_PROJECT_DIR", "AGENT_ID", "CHECKPOINT_INTERVAL", "HIVE_SESSION_ID", "TASK_FILE", "USE_QUEUE",
    "HIVEPIPE_AGENT_ID", "HIVEPIPE_AUTOSTART", "HIVEPIPE_CHECKPOINT_INTERVAL",
    "HIVEPIPE_EXPORTED", "HIVEPIPE_GUARD", "HIVEPIPE_GUARD_ALTERNATION",
    "HIVEPIPE_GUARD_EMPTY_POLLS", "HIVEPIPE_GUARD_LOOP", "HIVEPIPE_GUARD_POLLS",
    "HIVEPIPE_GUARD_WAITING", "HIVEPIPE_HOME", "HIVEPIPE_INSTANCE_ID",
    "HIVEPIPE_SESSION_ID", "HIVEPIPE_SHARED_ROOT", "HIVEPIPE_SWARM_ID", "HIVEPIPE_TASK_FILE",
    "HIVEPIPE_TASK_ID", "HIVEPIPE_USE_QUEUE",
};

static void add_variable(const char *name, const char *value) {
    size_t left = HEAD_BYTES - head_size;
    if (!value[0]) return;
    int size = snprintf(head + head_size, left, "env=%s=%s", name, value);
    if (size < 0 || (size_t)size >= left) head_is_full = 1;
    else head_size += (size_t)size + 1;
}

static void add_environment(void) {
    char state[PATH_BYTES];
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        add_variable(wanted[i], variable(wanted[i]));
    memcpy(state, state_folder, PATH_BYTES);
    *strrchr(state, '/') = 0;
    add_variable("XDG_STATE_HOME", state);
}

static int is_shell(const char *stat, const char *end) {
    return (end - stat > 3 && !memcmp(end - 2, "sh", 2)) || strstr(stat, "(env)") || strstr(stat, "(busybox)");
}

/* Tell whether a process adopts processes whose parent has ended. */
static int is_init(int pid, const char *stat) {
    return pid == 1 || strstr(stat, "init)") || strstr(stat, "systemd)") || strstr(stat, "tini)") ||
           strstr(stat, "catatonit)");
}

/* Add /proc/<pid>/stat of a process to the head, unless it has ended; return the pid of its parent
   if the parent may be Claude Code, else 0. */
static int add_process(int pid, int is_nearest) {
    char path[40], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (read_small(path, text, sizeof text) <= 0) return 0;
    add("stat", text);
    char *end = strrchr(text, ')');
    if (!end || strlen(end) < 5) return 0;
    /* An adopted hook adds itself, in place of the process that started it. */
    if (is_nearest && is_init(pid, text)) add_process(getpid(), 0);
    return !is_nearest || is_shell(text, end) ? atoi(end + 4) : 0;
}

/* Add Claude Code's process: the parent of this process, or of a shell above it. */
static void add_processes(void) {
    int pid = add_process(getppid(), 1);
    for (int i = 1; i < ANCESTORS && pid > 0; i++) pid = add_process(pid, 0);
}

/* Describe this process while its parent exists. */
static void begin_head(int64_t began_ns) {
    head_size = 12;
    add("time", "0000000000000000000"); /* set at the end of the head */
    add_number("pid", getpid());
    add_number("parent", getppid());
    add_number("began", began_ns);
    add("cwd", here);
    add("project", checkout);
    add("home", home_);
    add("record", record);
    for (char **argument = arguments + 1; *argument; argument++) add("arg", *argument);
    add_processes();
    add_environment();
}

static void end_head(void) {
    snprintf(head + 17, 20, "%019lld", (long long)now_ns(CLOCK_REALTIME));
    if (trouble[0]) add("trouble", trouble);
    uint32_t sizes[2] = {(uint32_t)head_size - 12, (uint32_t)input_size};
    memcpy(head, "HPv1", 4);
    for (int i = 0; i < 8; i++) head[4 + i] = (char)(sizes[i / 4] >> 8 * (i % 4));
    start_of_frame = input - head_size;
    frame_size = head_size + input_size;
    memcpy(start_of_frame, head, head_size);
}

/* ---- the intake */

static int is_ours(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           !(status.st_mode & 077);
}

/* With `must_see_pids`, a peer outside of this process's pid namespace is refused. Its pid is 0. */
static int peer_is_ours(int connection, int must_see_pids) {
#ifdef __linux__
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size)) return 0;
    return peer.uid == geteuid() && (!must_see_pids || peer.pid);
#else
    uid_t user;
    gid_t group;
    (void)must_see_pids;
    return getpeereid(connection, &user, &group) == 0 && user == geteuid();
#endif
}

/* Return a connection to a socket of this user's processes, or -1. */
static int reach(const char *path, int must_see_pids) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) return -1;
    memcpy(address.sun_path, path, strlen(path) + 1);
#ifdef __linux__
    int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connection < 0) return -1;
#else
    int connection = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connection < 0) return -1;
    fcntl(connection, F_SETFD, FD_CLOEXEC);
    fcntl(connection, F_SETFL, O_NONBLOCK);
#endif
    int is_connected = connect(connection, (struct sockaddr *)&address, sizeof address) == 0;
    if (is_connected && peer_is_ours(connection, must_see_pids)) return connection;
    close(connection);
    return -1;
}

static int reach_intake(void) {
    char path[PATH_BYTES];
    return is_ours(runtime) ? reach(join(path, runtime, "/intake.sock"), 1) : -1;
}

/* Return the path of the file that a hook without an answer makes for the next hooks; a running
   intake removes the file. */
static char *mark(char *path) {
    return join(path, runtime, "/intake-hangs");
}

static int hangs(void) {
    char path[PATH_BYTES];
    struct stat status;
    if (stat(mark(path), &status)) return 0;
    int64_t age = now_ns(CLOCK_REALTIME) / 1000000000 - status.st_mtime;
    return age >= 0 && age < HANGS_SECS;
}

static void mark_as_hanging(void) {
    char path[PATH_BYTES];
    int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int file = open(mark(path), flags, 0600);
    if (file >= 0) close(file);
}

/* Tell whether Redis accepts connections. Then a stack runs, and none must be started. */
static int has_redis(void) {
    int connection = redis_socket[0] ? reach(redis_socket, 0) : -1;
    if (connection >= 0) close(connection);
    return connection >= 0;
}

static size_t receive(int connection, char *data, size_t size, int64_t end) {
    size_t got = 0;
    while (got < size) {
        ssize_t more = read(connection, data + got, size - got);
        if (more == 0 || (more < 0 && errno != EAGAIN && errno != EINTR)) break;
        if (more < 0 && !wait_for(connection, POLLIN, end)) break;
        if (more > 0) got += (size_t)more;
    }
    return got;
}

/* Send the event and print the answer; return 0 if the intake did not accept the event. */
static int hand_over(int connection) {
    int64_t end = now_ns(CLOCK_MONOTONIC) + ANSWER_MS * 1000000LL;
    uint8_t said[5];
    if (!write_all(connection, start_of_frame, frame_size, end)) return 0;
    size_t got = receive(connection, (char *)said, 5, end);
    while (got == 0 && left_ms(end) == 0 && was_starved(ANSWER_MS)) {
        end = now_ns(CLOCK_MONOTONIC) + ANSWER_MS * 1000000LL;
        got = receive(connection, (char *)said, 5, end);
    }
    if (got < 5 || said[0] != 'A') return 0;
    size_t size = said[1] | (size_t)said[2] << 8 | (size_t)said[3] << 16 | (size_t)said[4] << 24;
    if (size == 0 || size > MOST_ANSWER) return 1;
    if (receive(connection, answer, size, end) == size) write_all(1, answer, size, end);
    return 1;
}

/* ---- without an intake */

/* Like strstr, but faster: the linked libc's strstr compares byte by byte at each position. */
static int contains(const char *text, const char *name) {
    size_t size = strlen(name);
    for (; *text; text++)
        if (*text == *name && !strncmp(text, name, size)) return 1;
    return 0;
}

static int mentions(const char *name) {
    static char text[HEAD_BYTES];
    static int is_read;
    char path[PATH_BYTES];
    if (!is_read) read_small(join(path, home_, "/hook-settings.json"), text, sizeof text);
    is_read = 1;
    return variable(name)[0] || contains(text, name) || strlen(text) == sizeof text - 1;
}

static int has_entries(const char *name) {
    char path[PATH_BYTES];
    DIR *folder = opendir(join(path, home_, name));
    if (!folder) return 0;
    int count = 0;
    while (count < 3 && readdir(folder)) count++;
    closedir(folder);
    return count > 2;
}

/* Tell whether this is a batch of calls and raw events wait in the spool. In Redis, a call of the
   batch would fail because its result is not known yet. Slot.is_behind does the same in the intake. */
static int is_behind(void) {
    char path[PATH_BYTES];
    DIR *folder = strcmp(event, "post_tool_batch") ? NULL : opendir(join(path, home_, "/spool"));
    if (!folder) return 0;
    struct dirent *entry;
    int found = 0;
    while (!found && (entry = readdir(folder))) {
        char *ending = strrchr(entry->d_name, '.');
        int64_t age = now_ns(CLOCK_REALTIME) / 1000000000 - atoll(entry->d_name) / 1000000000;
        found = ending && !strcmp(ending, ".raw") && llabs(age) < WAITING_SECS;
    }
    closedir(folder);
    return found;
}

/* Tell whether only the Python hook can handle this event without an intake: it may need an answer,
   or no stack will start soon and take the event from the spool. A Redis without an intake belongs
   to a Procfile or to an older stack. */
static int needs_python(void) {
    static const char *const answered[] = {"", "session_start", "user_prompt_submit", "statusline"};
    static const char *const settings[] = {"HIVEPIPE_AGENT_ID",    "HIVEPIPE_AUTOSTART",
                                           "HIVEPIPE_USE_QUEUE",   "HIVEPIPE_SHARED_ROOT"};
    static const char *const variables[] = {"AGENT_ID", "USE_QUEUE", "CI", "CLAUDE_CODE_REMOTE"};
    char path[PATH_BYTES], text[512];
    for (int i = 0; i < 4; i++)
        if (!strcmp(event, answered[i]) || mentions(settings[i]) || variable(variables[i])[0]) return 1;
    if (!redis_socket[0] || has_redis() || !is_ours(runtime)) return 1;
    if (has_entries("/tasks/cancelled")) return 1;
    join(path, runtime, "/starting");
    char *failures = read_small(path, text, sizeof text) > 0 ? strchr(text, ' ') : NULL;
    return failures && atoi(failures) > 0;
}

/* Have the Python hook start the stack in the background, if that is due. */
static void start_stack(void) {
    char path[PATH_BYTES], text[512];
    if (has_redis()) return;
    if (read_small(join(path, runtime, "/starting"), text, sizeof text) > 0) {
        int64_t wait = atoll(text) - now_ns(CLOCK_REALTIME) / 1000000000;
        if (wait > 0 && wait <= 3600) return;
    }
    pid_t child = fork();
    if (child != 0) return;
    setsid();
    int nowhere = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++) dup2(nowhere, i);
    char *words[] = {arguments[0], "start_stack", NULL};
    input_size = frame_size = 0;
    arguments = words;
    become_python();
}

/* Write the event to the spool; return 0 on failure. */
static int spool(void) {
    char folder[PATH_BYTES + 8], final[PATH_BYTES + 72], path[PATH_BYTES + 80];
    char *stamp = strchr(head + 12, '=') + 1;
    snprintf(folder, sizeof folder, "%s/spool", home_);
    snprintf(final, sizeof final, "%s/%020lld_%d.raw", folder, atoll(stamp), (int)getpid());
    snprintf(path, sizeof path, "%s.tmp", final);
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int file = open(path, flags, 0600);
    if (file < 0 && errno == ENOENT && mkdir(folder, 0700) == 0) file = open(path, flags, 0600);
    if (file < 0) return 0;
    int is_written = write_all(file, start_of_frame, frame_size, 0);
    if (close(file)) is_written = 0; /* NFS reports a full disk only here */
    if (is_written && rename(path, final) == 0) return 1;
    unlink(path);
    return 0;
}

/* ---- */

static int is_yes(const char *word) {
    static const char *const yes[] = {"1", "true", "yes", "on"};
    for (int i = 0; i < 4; i++)
        if (!strcasecmp(word, yes[i])) return 1;
    return 0;
}

/* Find the folder of this program; the records are beside it, even if a session changes HOME. */
static int find_itself(void) {
#ifdef __linux__
    char *path = (char *)getauxval(AT_EXECFN);
#else
    static char called[4096];
    uint32_t limit = sizeof called;
    char *path = _NSGetExecutablePath(called, &limit) ? NULL : called;
#endif
    if (path && (path[0] != '/' || !strstr(path, "/hivepipe/hooks/"))) path = realpath(path, NULL);
    if (!path) return 0;
    *strrchr(path, '/') = 0;
    own_folder = path;
    char *end = NULL;
    for (char *at = join(state_folder, path, ""); (at = strstr(at, "/hivepipe/hooks/")); at++) end = at;
    if (end) end[9] = 0;
    return end != NULL;
}

int main(int count, char **words) {
    int64_t began_ns = now_ns(CLOCK_MONOTONIC) - now_ns(CLOCK_PROCESS_CPUTIME_ID);
    static char *none[] = {"hook", NULL};
    arguments = count > 0 ? words : none;
    if (count > 1) event = words[1];
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN); /* nobody reads the answer, or the intake was killed */
    signal(SIGXFSZ, SIG_IGN); /* with a limit (ulimit -f), a write must fail without a signal */
    umask(077);
    if (!getcwd(here, sizeof here)) here[0] = 0;
    if (!find_itself() || !strcmp(variable("HIVEPIPE_HOOK"), "python")) become_python();
    is_status_line = !strcmp(event, "statusline");
    int is_off = is_yes(variable("HIVEPIPE_DISABLED")) || is_yes(variable("HIVEPIPE_NESTED"));
    if (is_off && !is_status_line) _exit(0);
    /* With an argument, the Python hook prints another status line first. */
    if ((is_status_line && words[2]) || !locate()) become_python();
    /* The intake wakes up while the event is read. A socket must not take the place of stdin. */
    if (!hangs() && fcntl(0, F_GETFD) >= 0) to_intake = reach_intake();
    begin_head(began_ns);
    read_input();
    end_head();
    /* The Python hook would look for the parent, which a late hook has lost. */
    int is_large = input_size > MOST_SENT && !is_late;
    if (is_large || head_is_full || (is_status_line && trouble[0])) become_python();
    if (to_intake < 0 && !is_late && needs_python() && !(is_behind() && has_redis())) become_python();
    if (to_intake >= 0) {
        int64_t end = now_ns(CLOCK_MONOTONIC) + ANSWER_MS * 1000000LL;
        if (hand_over(to_intake)) _exit(0);
        if (left_ms(end) == 0) mark_as_hanging();
        if (is_status_line) become_python();
    }
    limit_time(DISK_MS);
    if (!spool()) become_python();
    start_stack();
    _exit(0);
}
