"""The paths that a shell command writes. A command whose paths are unknown is unreadable."""

import posixpath
import shlex
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivepipe.guard.shell_writes import writes_of


def written(command: str) -> list[str]:
    return [
        path if path.startswith(("/", "~")) else posixpath.normpath(f"{folder}/{path}")
        for folder, path, _ in writes_of(command, "/home/ana").paths
    ]


# Commands that write /s/a alone, and commands that write nothing.
OF_ONE = (
    "cat > /s/a", "cat >/s/a", "echo x >> /s/a", "echo x >| /s/a", "make &> /s/a",
    "make > /s/a 2>&1", "make 2> /s/a", "cat <> /s/a", "(echo x > /s/a)", "{ echo x; } > /s/a",
    "curl -o /s/a https://x", "curl -sSLo /s/a https://x",
    "wget --output-document=/s/a https://x", "wget -O/s/a https://x", "sort b -o /s/a",
    "mkdir -p /s/a", "rm -rf /s/a", "sudo -n rm /s/a", "FOO=1 BAR=2 touch /s/a",
    "env FOO=1 touch /s/a", "/usr/bin/touch /s/a", "sed -n '1s/.*/x/w /s/a' b",
    "sed -n '/x/{w /s/a}' b", "sed -n 's/a/b/gw /s/a' b", "sudo -u root rm /s/a",
    "env -u HOME timeout -k 5 10s nice -n 19 busybox rm /s/a",
    "timeout -s KILL --kill-after 5 10 rm /s/a",
    "/usr/bin/sudo -ng group env -i ionice -c3 ionice -c idle rm /s/a",
    "sudo -uroot stdbuf -oL rm /s/a", "dd if=/s/b of=/s/a bs=1M", "cd /s && echo x > a",
    "case x in a) cd /s;; esac; touch a", "cd /s || touch a",
    "while :; do cd /s; break; done; touch a", "case x in (a) touch /s/a;; esac",
    "cd /s; cd /t; cd -; touch a", "cat <<'END' > /s/a\n> /s/b\nEND\n", "cat <<< x > /s/a",
    "echo x \\\n > /s/a", "pushd /s; touch a", "bash -c 'echo x > /s/a'", "eval 'echo x > /s/a'",
    "echo `touch /s/a`", 'echo "$(touch /s/a)"', "find . -name x -exec cp {} /s/a \\;",
    "find . -exec rm /s/a +", "find /s/a -exec find /s/b -exec rm {} +",
    "perl -pi -e s,a,b, /s/a", "time { touch /s/a; }", "time -p { touch /s/a; }",
    "while read x; do cat x; done < <(touch /s/a)", 'cat <<< "$(touch /s/a)"',
    "x=$(case x in a) ;; esac; touch /s/a)", "[[ x > y ]] && touch /s/a",
    "[[ x ]] > /s/a", "[[ $(touch /s/a) < x ]]", "env -C /s touch a", "env --chdir=/s touch a",
    "sudo -D /s touch a", "flock -w 2 /run/l touch /s/a", "flock /run/l -c 'touch /s/a'",
    "chrt -o 0 taskset 1 touch /s/a", "bash -euo pipefail -c 'touch /s/a'",
    "eval -- 'touch /s/a'", "function f { touch /s/a; }", "function f() { touch /s/a; }",
    "bash <<E\ntouch /s/a\nE", "bash -s <<'E'\ncd /s\ntouch a\nE", "sh <<< 'touch /s/a'",
    "cat <<E\n$(touch /s/a)\nE", "cat <<E\nit's `touch /s/a`\nE", "touch $'/s/a'", 'touch $"/s/a"',
    "sed -i '' s/a/b/ /s/a", "if [[ x ; then touch /s/a; fi", "D=/s; touch $D/a",
    'D="/s"; touch "${D}/a"', "export D=/s; (touch $D/a)", "D=/s; (cd $D && touch a)",
    "D=/s; echo $(touch $D/a)", 'D=/s; bash -c "touch $D/a"', "D=/s; E=$D/a; touch $E",
    "for f in /s/a; do touch $f; done", "(( x > $(touch /s/a) ))", "echo $(( $(touch /s/a) > 1 ))",
    "echo ${x:-$(touch /s/a)}", "git commit -m \"$(cat <<'E'\n1) don't\nE\n)\"; touch /s/a",
    "x=(b # it's\n); touch /s/a", "x=$((n << m\n))\ntouch /s/a", "echo ${x#<<E}\ntouch /s/a",
    "for ((;;)) { touch /s/a; }", "[[ x && # it's\n y ]]\ntouch /s/a",
    'X=(rm -rf /s/a); "${X[@]}"', "X=(b rm /s/a # c\n); ${X[1]} ${X[2]}", "X='rm -rf'; $X /s/a",
    "set -- rm /s/a; \"$@\"", "bash -c 'rm \"$1\"' _ /s/a", "cd /s; touch $PWD/a",
    "cd /s; X=$(pwd); cd /; touch $X/a", "cd /s; cd /; touch $OLDPWD/a",
    "export X=/s/a; sh -c 'touch $X'", "script -qc 'touch /s/a' /s/a", "env -S 'A=1 touch /s/a'",
    "env -S touch /s/a", "su ana -c 'touch /s/a'", "xargs touch <<< /s/a", "echo touch /s/a | sh",
    "find /s/a -print0 | xargs -0 rm -r", "command find /s/a | head -1 | xargs -I% rm %",
    "echo /s/a | parallel rm", "echo a | xargs sh -c 'touch /s/$1' _", "nice -5 \\rm /s/a",
    "ls -d /s/a | xargs rm", "declare X=(/s/a); rm ${X[*]}", "declare -x X=/s/a; sh -c 'rm $X'",
    "X=/s/a; export X; sh -c 'rm $X'", "set -a; X=/s/a; sh -c 'rm $X'", "X=/s/a sh -c 'rm $X'",
    "env X=/s/a nice sh -c 'rm $X'", "export X=/s/a; sh <<'E'\nsh -c 'rm $X'\nE\n",
    "X=/s/a; eval 'rm $X'", "set -- a /s/a; shift; rm $1",
    "for f in a b; do cat <<E; done > /s/a\nrm /s/b\nE\n",
)  # fmt: skip
OF_NONE = (
    "make >&2", "make 2>&-", "cat < /s/a", "echo 'a > /s/a'", 'echo "a > /s/a"',
    "echo a \\> /s/a", "curl -so- https://x", "sort /s/a", "sed s/a/b/ /s/a",
    "sed 's|now /s/a|/s/b|' b",
    "rsync -ne ssh a /s; rsync -an --delete a /s; rsync --dry-run a /s", "echo x # > /s/a",
    "if [[ a > /s/a && (x || y > /s/a) ]]; then ls; fi", "[[ a =~ ^(x|rm)$ ]]", "grep -r x /s",
    "find /s -exec sed -n p {} \\;", "find /s -name '*.py'",
    "rsync -rt a ana@web1:/s/d", "scp /s/a web1:", "sed -es/i/o/ /s/a", "", "'", "echo $(",
    "echo `", "cat > ", "(( 3 > 2 ))", "if ((n>1)); then ls; fi", "echo $((1>0))", "echo $[3 > 2]",
    'echo "$((2>1))"', "echo $(( (1+2)*3 > 4 ))", "for ((i=3;i>0;i--)); do ls; done",
    "(( x = 1 << 2 ))", "[[ 1 -eq 1\n&& 2 > 1 ]]", "echo ${x//>/y}", "a=(rm mv\ncp)", "a+=(rm x)",
    "echo $'it\\'s > x'", "x=$(cat <<'E'\na) > /s/a\nE\n)", "cat <<'E'\n$(touch /s/a)\nE",
    "ssh web1 bash <<E\ntouch /s/a\nE", "touch() { ls; }", "X=/s/a; sh -c 'rm $X'",
    "X=/s/a; sh <<'E'\nrm $X\nE\n", "set -a; set +a; X=/s/a; sh -c 'rm $X'",
    "X=/s/a; flock b -c 'rm $X'", "(export X=/s/a); sh -c 'rm $X'",
    "export X=/s/a; env -i sh -c 'rm $X'", "export X=/s/a; env -u X sh -c 'rm $X'",
    "export -n X=/s/a; sh -c 'rm $X'", "set -- a /s/a; set -- b; rm $2",
)  # fmt: skip


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        *((command, ["/s/a"]) for command in OF_ONE),
        *((command, []) for command in OF_NONE),
        ("make 2>/dev/null", ["/dev/null"]),
        ("echo x > '/s/a b'", ["/s/a b"]),
        ('echo x > "/s/a b"', ["/s/a b"]),
        ("echo x > /s/a\\ b", ["/s/a b"]),
        ("true && echo x > /s/a || echo y > /s/b; echo z > /s/c", ["/s/a", "/s/b", "/s/c"]),
        ("ls | tee -a /s/a /s/b", ["/s/a", "/s/b"]),
        ("cp a b /s/d", ["/s/d"]),
        ("touch /s/{a,b{1,2}}", ["/s/a", "/s/b1", "/s/b2"]),
        ("cp a{,.bak} /s/d; touch {a} '{a,b}'", ["/s/d", "/home/ana/{a}", "/home/ana/{a,b}"]),
        ("((touch /s/a) | touch /s/b)", ["/s/a", "/s/b"]),
        ("D=/s; D=/t; touch $D/a", []),
        ("D=/s; read D; touch $D/a", []),
        ("x || D=/s; touch $D/a", []),
        ("if x; then D=/s; fi; touch $D/a", []),
        ("(D=/s); touch $D/a; D=/s x; touch $D/b", []),
        ("D='a b'; touch $D; D=~; touch $E", []),
        ("cp -r a -t /s/d", ["/s/d"]),
        ("cp --target-directory=/s/d a", ["/s/d"]),
        ("cp -t/s/t a", ["/s/t"]),
        ("mv /s/a b", ["/home/ana/b", "/s/a"]),
        ("ln -s /s/a b", ["/home/ana/b"]),
        ("touch /s/a /s/b", ["/s/a", "/s/b"]),
        ("sed -i s/a/b/ /s/a; sed --in-place=.x -e p /s/b", ["/s/a", "/s/b"]),
        ("cd /s; cd b; touch c; rm d!(e)", ["/s/b/c", "/s/b/d!"]),
        (
            "(cd /s && ls); touch a; (cd /s; (cd b; touch c); touch d) > e",
            [*("/home/ana/a", "/s/b/c", "/s/d", "/home/ana/e")],
        ),
        ("cd /s | cat; touch a", ["/home/ana/a"]),
        ("cd /s && ls & touch a", ["/home/ana/a"]),
        ("cd /s & touch a 2>&1", ["/home/ana/a"]),
        ("(cd /s; cat x |& cat; touch a); touch b", ["/s/a", "/home/ana/b"]),
        ("rsync -a -f '- bin' a /s/b; rsync --exclude -n a /s/c", ["/s/b", "/s/c"]),
        ("rsync -a --remove-source-files /s/a b", ["/home/ana/b", "/s/a"]),
        ("ls | while read x; do cd /s; done; touch a", ["/home/ana/a"]),
        ("{ cd /s; } | cat; touch a; { cd /s; }; touch b", ["/home/ana/a", "/s/b"]),
        ("(case x in a|b) cd /s;; esac; touch a); touch b", ["/s/a", "/home/ana/b"]),
        ("cd /s/b/../c; cd ..; touch a; cd; touch b", ["/s/a", f"{Path.home()}/b"]),
        ("pushd /s; popd; touch a; popd; touch b", ["/home/ana/a", "/home/ana/b"]),
        ("pushd /s; pushd /t; pushd; touch a; popd; popd; touch b", ["/s/a", "/home/ana/b"]),
        ("f() { touch /s/a; }; a=(rm x); diff <(ls) b > /s/b", ["/s/a", "/s/b"]),
        ("tee >(touch /s/a) /s/b", ["/s/a", "/s/b"]),
        ("trap 'rm /s/a' EXIT; trap - EXIT; trap '' INT; coproc rm /s/b", ["/s/a", "/s/b"]),
        ("command -v rm /s/a; command rm /s/b; X+=1 rm /s/c", ["/s/b", "/s/c"]),
        ("rm -f -- -a /s/a", ["/home/ana/-a", "/s/a"]),
        ("chmod u+x /s/a; chmod -x /s/b; chmod --reference b /s/c", ["/s/a", "/s/b", "/s/c"]),
        ("touch -d now -r b /s/a; mkdir -m 755 /s/b; truncate -s 0 /s/c", ["/s/a", "/s/b", "/s/c"]),
        ("ln -s /s/a; ln -s /s/a b; ln -t /s a", ["/home/ana", "/home/ana/b", "/s"]),
        ("ls | xargs -I{} touch /s/{}", ["/s/*"]),
        ("cat b | xargs -I{} touch /s/{} {}", ["/s/*"]),
        ("for f in a /s/b; do rm $f; done", ["/home/ana/a", "/s/b"]),
        ("for f in a b; do cp x /s/$f; done", ["/s/a", "/s/b"]),
        ("for f in a b; do mv /s/$f /t/$f; done", ["/t/a", "/s/a", "/t/b", "/s/b"]),
        (
            "for f in a b; do for g in c d; do touch $f/$g; done; done",
            [f"/home/ana/{path}" for path in ("a/c", "a/d", "b/c", "b/d")],
        ),
        ("for f in a; do rm $f; done; for f in b; do rm $f; done", ["/home/ana/a", "/home/ana/b"]),
        ("X=(/s/a '/s/b c'); rm x\"${X[@]}\"y", ["/home/ana/x/s/a", "/s/b cy"]),
        ("X='/s/a /s/b'; rm $X \"$X\"; Y=$X", ["/s/a", "/s/b", "/s/a /s/b"]),
        ("a='/s/*'; rm \"$a\"; rm $a", ["/s/*"]),
        ("printf '%s\\n' /s/a /s/b | sort | xargs rm", ["/s/a", "/s/b"]),
        ("printf '/s/a\\0/s/b' | xargs -0 rm", ["/s/a", "/s/b"]),
        ("find /s/a | grep x | xargs -0 rm", ["/s/a"]),
        ("parallel rm ::: /s/a /s/b; parallel 'cd /s; rm {}' ::: a", ["/s/a", "/s/b", "/s/a"]),
        ("cd $X; touch a /s/b; cd /s; touch c", ["/s/b", "/s/c"]),
        ("rm '~' \\~/a ~/b", ["/home/ana/~", "/home/ana/~/a", "~/b"]),
        ("touch ../bob/a", ["/home/bob/a"]),
        ("cat > /s/a <<EOF\nrm /s/b > /s/c\nEOF\ntouch /s/d", ["/s/a", "/s/d"]),
        ("cat <<-X > /s/a\n\tx\n\tX\ntouch /s/b", ["/s/a", "/s/b"]),
        ("for f in a b; do touch /s/x; done", ["/s/x"]),
        ("if true; then touch /s/x; else touch /s/y; fi", ["/s/x", "/s/y"]),
        ("if cp a /s/x; then :; fi", ["/s/x"]),
        ("while read x; do touch /s/x; done", ["/s/x"]),
        ("sh -ec 'cd /s && touch \"b c\"'", ["/s/b c"]),
        ('echo "$(echo \'(\' $(echo ")") ; touch /s/a)" > b', ["/s/a", "/home/ana/b"]),
        ("x=$(cat /s/a) touch /s/b", ["/s/b"]),
        ("find /s/a /s/b -name x -delete", ["/s/a", "/s/b"]),
        ("find /s/a /s/b -name x -exec rm -f {} +", ["/s/a", "/s/b"]),
        ("find -exec rm {} \\;", ["/home/ana"]),
        ("find /s -exec cp {} {}.bak \\;", ["/s"]),
        ("find -delete", ["/home/ana"]),
        ("find -L /s/a -delete", ["/s/a/"]),
        ("find -H /s/a -exec rm {} +", ["/s/a/"]),
        ("find /s/a -execdir sudo -n sh -c 'touch /s/b' \\;", ["/s/b"]),
        ("cp -at /s/d a", ["/s/d"]),
        ("cp -t/s/d a", ["/s/d"]),
        ("cp --target-directory /s/d a", ["/s/d"]),
        ("rsync -rt a /s/d", ["/s/d"]),
        ("scp web1:a /s/d", ["/s/d"]),
        ("install -d /s/a /s/b", ["/s/a", "/s/b"]),
        ("sed -Ei s,a,b, /s/a; sed -i.bak -f b /s/c", ["/s/a", "/s/c"]),
    ],
)
def test_literal_targets_are_found(command: str, paths: list[str]) -> None:
    assert written(command) == paths


@pytest.mark.parametrize(
    "command",
    [
        "echo x > $F",
        'echo x > "$F"',
        "touch `date`",
        "touch $(date)",
        "rm /s/*",
        "python make.py /s",
        "$CMD x",
        "cd $D && touch a",
        "./build /s",
        "bash /s/run.sh",
        'bash -c "touch $F"',
        "awk '{print > \"/s/a\"}' b",
        "perl -e 'unlink' /s/a",
        "xxd -r b /s/a",
        "uniq b /s/a",
        "tree -o /s/a",
        "find . -fls /s/a",
        "sudo apt install a",
        "ls | xargs rm",
        'echo "$(python make.py)" /s',
    ],
)
def test_a_command_with_unknown_paths_is_unreadable(command: str) -> None:
    assert not writes_of(command, "/home/ana").is_readable


@pytest.mark.parametrize(
    "command",
    [
        *("cat /s/a", "ls -l /s", "grep -rn x /s | head -5", "cd /s && ls", "echo 'a $F'"),
        *("xxd /s/a | tr a b", "uniq -f 1 /s/a", "if [ -f /s/a ]; then cat /s/a; fi"),
        'for f in /s/*; do read -r x < "$f"; echo "$x"; done',
    ],
)
def test_a_command_that_only_reads_is_readable(command: str) -> None:
    found = writes_of(command, "/home/ana")
    assert found.is_readable
    assert found.paths == []


class Counted(str):
    """A text that counts the characters copied out of it."""

    copied = 0

    def __getitem__(self, key: Any) -> str:
        found = super().__getitem__(key)
        self.copied += len(found)
        return found


def test_a_long_here_document_is_read_once() -> None:
    text = Counted(
        "cat > /s/a <<EOF\n" + "a line of it\n# not a comment\n" * 500 + "EOF\n# one\n" * 500
    )
    assert [path for _, path, _ in writes_of(text, "/").paths] == ["/s/a"]
    assert text.copied < 4 * len(text)


@pytest.mark.parametrize("opener", ["[[ ", "((", "${", "$[", '"${'])
def test_brackets_that_are_not_closed_are_read_a_few_times(opener: str) -> None:
    text = Counted(opener * 2000)
    writes_of(text, "/")
    assert text.copied < 50 * len(text)


def test_variables_that_double_each_time_are_not_expanded() -> None:
    doubled = "".join(f"v{n}=$v{n - 1}$v{n - 1}; " for n in range(1, 40))
    paths = writes_of(f"v0=abcdefghij; {doubled} rm $v1 $v39", "/").paths
    assert paths == [("/", "abcdefghij" * 2, 1)]


def test_nested_commands_of_find_are_read_once() -> None:
    assert len(writes_of("find a b " + "-delete " * 9, "/").paths) == 2
    assert len(writes_of("find a -exec " * 4 + "rm {} +", "/").paths) == 1
    assert not writes_of("find a -exec " * 40 + "rm {} +", "/").is_readable


def test_a_command_of_find_is_not_repeated_for_each_start_point() -> None:
    starts = " ".join(f"s{number}" for number in range(900))
    paths = writes_of(f"find {starts} -exec rm {{}} \\; -exec touch {'{} ' * 900} +", "/").paths
    assert len(paths) == 2 * 900


def test_the_body_of_a_loop_is_read_after_its_last_turn() -> None:
    found = writes_of("for d in /s a ../b; do cd $d; touch x; done; touch y", "/")
    assert [path[:2] for path in found.paths] == [
        *(("/s", "x"), ("/s/a", "x"), ("/s/b", "x"), ("/s/b", "y")),
    ]


def test_loops_in_loops_are_read_within_a_limit() -> None:
    loop = "for v{} in " + "w " * 40 + "; do "
    found = writes_of(
        "".join(loop.format(n) for n in range(9)) + "rm $v0/$v8; " + "done; " * 9, "/"
    )
    assert not found.is_readable
    assert found.paths == [("/", "w/w", 1)]


def test_nested_commands_that_multiply_are_read_within_a_limit() -> None:
    command = "touch" + " a" * 60
    assert writes_of(f"echo a | xargs sh -c {shlex.quote(command)}", "/").is_readable
    for mark in "%@":
        command = f"echo {'w ' * 45} | xargs -I{mark} sh -c {shlex.quote(command)} x{mark}"
    assert not writes_of(command, "/").is_readable


@pytest.mark.parametrize(
    "command",
    [
        f"sh -c '{'$1' * 9000}' _ {'a' * 9000}",
        f"X={'a' * 9000} sh -c 'rm {'$X' * 9000}'",
        f"set -- {'a' * 9000}; rm {'$1' * 9000}",
        f"echo {'a' * 9000} | xargs -I{{}} rm {'{}' * 9000}",
        f"touch {'{' * 9000}{',' * 9000}{'}' * 9000}",
        "`" * 18000,
        "(" * 60000,
    ],
)
def test_no_command_takes_much_memory(command: str) -> None:
    tracemalloc.start()
    try:
        writes_of(command, "/")
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@given(st.text(max_size=60))
def test_any_text_is_read_to_its_end(command: str) -> None:
    writes_of(command, "/")


@given(st.text("ab '\"\\$>|&;\n*#(", min_size=1, max_size=20))
def test_a_quoted_path_is_read_as_the_shell_reads_it(path: str) -> None:
    (found,) = writes_of(f"cat > {shlex.quote('/s/' + path)}", "/").paths
    assert found[1] == f"/s/{path}"
