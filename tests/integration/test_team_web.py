"""`hivepipe team page`: who may use it, and what each person sees."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from hivepipe.cli.main import main
from hivepipe.cli.team.page import page as page_command
from hivepipe.errors import TeamRefusedError
from hivepipe.home import locate
from hivepipe.reading.team import source as of_source
from hivepipe.reading.team.source import Source, opened
from hivepipe.summaries.providers import TEAM_PAGE, write_credential
from hivepipe.team import invites, membership
from hivepipe.team.connection import connected
from hivepipe.web.team_page import oidc
from hivepipe.web.team_page.app import team_page
from hivepipe.web.team_page.identity import IdentityError, TrustedHeader
from hivepipe.web.team_page.oidc import SignIn
from tests.archive_scene import SESSION
from tests.identity_provider import CLIENT, SECRET, Provider, identity_provider
from tests.integration.test_team_archives import Member
from tests.team_readers import Members, made_members, members, own_members
from tests.team_scene import ADMIN, Team
from tests.team_scene import SECRET as OF_ADMIN
from tests.web_scene import HOSTILE, served

__all__ = ["made_members", "members", "own_members"]
HEADER = "X-Forwarded-User"
URL = "http://hive.example"


def run_as_admin(team_members: Members, *words: str) -> str:
    given = [*words, "--admin", team_members.team.server.url(team_members.team.database, ADMIN)]
    done = CliRunner().invoke(main, given, input=f"{OF_ADMIN}\n")
    assert done.exit_code == 0, done.output
    return done.stdout.strip()


@pytest.fixture(scope="module")
def page_login(made_members: Members) -> str:
    with connected(made_members.team.admin) as connection:
        return invites.add_page(connection, made_members.team.admin.with_login("", "")).url


@pytest.fixture
def page(members: Members, page_login: str) -> Members:
    """The login of a page, on a machine that belongs to no member."""
    members.use("eve/desk")
    membership.remove()
    write_credential(TEAM_PAGE, page_login)
    return members


@pytest.fixture
def own_page(own_members: Members) -> Members:
    """Like `page`, with a team that a test may change and a login that a command made."""
    own_members.use("eve/desk")
    membership.remove()
    write_credential(TEAM_PAGE, run_as_admin(own_members, "team", "page-login"))
    return own_members


def behind_proxy(client: str = "10.0.0.7", person: str = "bob") -> TestClient:
    identity = TrustedHeader(HEADER, [ip_network("10.0.0.0/24"), ip_network("fd00::/8")])
    app = team_page(locate("."), identity, URL)
    headers = {HEADER: person} if person else {}
    return TestClient(app, base_url=URL, client=(client, 1234), headers=headers)


# ---- what a person sees
def people_of(client: TestClient) -> set[str]:
    return {each["person"] for each in client.get("/now.json?all=1").json()["sessions"]}


@pytest.mark.usefixtures("page")
def test_each_person_sees_what_their_role_allows() -> None:
    expected = {"ann": {"ann"}, "bob": {"ann", "bob"}, "eve": {"ann", "bob", "eve"}}
    for person, others in expected.items():
        client = behind_proxy(person=person)
        assert people_of(client) == others
        for view in ("now", "agents", "costs", "search", "audit"):
            shown = client.get(f"/{view}?all=1&q=cart")
            assert shown.status_code == 200, shown.text
            for other in {"ann", "bob", "eve"} - others:
                assert f"{other}," not in shown.text, (person, view)
        costs = client.get("/costs.json?all=1").json()["sums"]["person"]
        assert {name for name, _ in costs} == others
    for nobody in ("tom", "", "ann' OR true --", "Ann"):
        client = behind_proxy(person=nobody)
        assert client.get("/now").status_code == (403 if nobody else 401), nobody


def test_a_read_of_another_persons_session_is_audited_first(page: Members) -> None:
    client = behind_proxy(person="bob")
    listed = client.get("/now?all=1").text
    page.team.rows("DELETE FROM hivepipe.audit")
    ((home,),) = page.team.rows("SELECT home FROM hivepipe.sessions WHERE id = 'ann-1'")
    path = f"/session/{home}/ann-1"
    assert f'href="{path}?team=1"' in listed
    shown = client.get(path)
    assert shown.status_code == 200
    for text in ("title of ann-1", "ann, desk", "mend the cart of ann-1", "The cart of ann-1"):
        assert text in shown.text
    assert page.audit() == [["bob", "ann", "ann-1", "session"], ["bob", "ann", "ann-1", "archive"]]
    own = behind_proxy(person="ann")
    assert own.get(path).status_code == 200
    assert len(page.audit()) == 2  # reading one's own session adds no entry
    reads = own.get("/audit.json").json()["reads"]
    assert {(each["reader"], each["session_id"]) for each in reads} == {("bob", "ann-1")}
    assert "bob" in own.get("/audit").text
    assert client.get("/audit.json").json()["reads"] == []
    for other in (f"/session/{home}/ann-2", f"/session/{home}/ann", "/session/x/ann-1"):
        expected = 200 if other.endswith("ann-2") else 404
        assert client.get(other).status_code == expected, other
    ((eves,),) = page.team.rows("SELECT home FROM hivepipe.sessions WHERE id = 'eve-1'")
    assert client.get(f"/session/{eves}/eve-1").status_code == 404


def test_a_read_of_another_persons_archive_is_audited(team: Team, tmp_path: Path) -> None:
    team.query("SELECT hivepipe.set_policy('*', 'everything')")
    team.query("SELECT hivepipe.set_archive_store('database')")
    ann = Member(tmp_path, team)
    ann.grow(12)
    ann.send()
    team.joined("bob", sees="all")
    with connected(team.admin) as connection:
        page_login = invites.add_page(connection, team.admin.with_login("", ""))
    write_credential(TEAM_PAGE, page_login.url)
    for person in ("bob", "ann"):
        shown = behind_proxy(person=person).get(f"/session/{ann.number}/{SESSION}")
        assert shown.status_code == 200
        assert "answer 11" in shown.text
    noted = team.rows("SELECT reader, what FROM hivepipe.v_audit ORDER BY at")
    assert noted == [["bob", "session"], ["bob", "archive"]]


def test_a_page_reads_nothing_without_an_audit_entry(page: Members) -> None:
    ((home,),) = page.team.rows("SELECT home FROM hivepipe.sessions WHERE id = 'ann-1'")
    rows = "SELECT * FROM hivepipe.session_rows(%(home)s, 'ann-1', 'prompts')"
    with pytest.raises(TeamRefusedError, match="may not read"), opened("bob") as source:
        source.rows(rows, {"home": int(home)})
    with connected(membership.page_address()) as connection:
        for person in ("", "tom"):  # an unknown person sees nothing
            source = Source(connection, person)
            assert source.rows("SELECT * FROM hivepipe.v_homes", {}) == []
            assert source.rows("SELECT key FROM hivepipe.sessions", {}) == []


def test_only_the_login_of_a_page_reads_for_others(page: Members) -> None:
    with connected(page.logins["ann/desk"].reads) as connection:
        found = Source(connection, "eve").rows("SELECT DISTINCT person FROM hivepipe.v_homes", {})
    assert [row["person"] for row in found] == ["ann"]


def test_a_revoked_page_and_a_forgotten_member_see_nothing(own_page: Members) -> None:
    client = behind_proxy(person="bob")
    assert client.get("/now").status_code == 200
    own_page.team.query("SELECT hivepipe.forget_member('bob')")
    refused = client.get("/now")
    assert refused.status_code == 403
    assert "bob is not a member of this team: upper and lower case must be as" in refused.text
    assert run_as_admin(own_page, "team", "page-login", "--revoke") == "revoked: 1 login"
    assert behind_proxy(person="ann").get("/now").status_code == 403


def test_hostile_texts_are_escaped_on_the_page(own_page: Members) -> None:
    home = own_page.homes["bob/desk"]
    text = HOSTILE.replace("'", "''")
    home.sql(f"UPDATE sessions SET objective = '{text}'")
    home.sql(f"UPDATE prompts SET prompt = 'cart {text}'")
    home.sql(f"UPDATE agents SET type = '{text}'")
    home.ship()
    ((number,),) = own_page.team.rows("SELECT home FROM hivepipe.sessions WHERE id = 'bob-1'")
    client = behind_proxy(person="eve")
    for path in ("/now?all=1", "/agents", "/search?q=cart", f"/session/{number}/bob-1"):
        shown = client.get(path)
        assert "&lt;script&gt;" in shown.text, path
        assert "<script>alert" not in shown.text, path
        assert "default-src 'none'" in shown.headers["Content-Security-Policy"]


def test_the_search_of_a_team_refuses_a_filter_that_it_does_not_know() -> None:
    client = behind_proxy()
    shown = client.get("/search").text
    assert 'id="person"' in shown
    for name in ("role", "agent", "tool", "project"):
        found = client.get(f"/search.json?q=cart&{name}=user").json()
        assert found["error"] == f"the search of a team has no filter {name}"
        assert f'id="{name}"' not in shown


@pytest.mark.usefixtures("page")
def test_a_search_without_words_is_a_bad_request() -> None:
    for address in ('/search?q=""', '/search.json?q=""'):
        answer = behind_proxy().get(address)
        assert (answer.status_code, "nothing to search for" in answer.text) == (400, True)


# ---- the header of a proxy
@pytest.mark.usefixtures("page")
def test_the_header_is_accepted_only_from_the_proxy() -> None:
    for client in ("10.0.1.7", "127.0.0.1", "::1", "testclient", "", "::ffff:10.0.1.7"):
        refused = behind_proxy(client).get("/now")
        assert refused.status_code == 403, client
        assert "only be reached through its proxy" in refused.text
    for client in ("10.0.0.1", "fd00::1", "::ffff:10.0.0.9"):
        assert behind_proxy(client).get("/now").status_code == 200, client
    proxy = behind_proxy(person="")
    assert proxy.get("/now").status_code == 401
    twice = httpx2.Headers([(HEADER, "ann"), (HEADER, "eve")])
    assert proxy.get("/now", headers=twice).status_code == 403
    assert proxy.get("/now", headers={"X-Real-User": "ann"}).status_code == 401


@pytest.mark.usefixtures("page")
def test_changes_and_other_hosts_are_refused() -> None:
    client = behind_proxy()
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert client.request(method, "/now").status_code == 405
    assert client.post("/logout").status_code == 403
    refused = client.get("/now", headers={"Host": "evil.example"})
    assert refused.status_code == 403
    assert f"this page is {URL}; a proxy in front of it must pass on" in refused.text
    assert client.get("/healthy", headers={"Host": "127.0.0.1"}).text == "yes\n"


def test_the_path_that_is_checked_is_the_path_that_is_served() -> None:
    """The URL of a request also depends on the header Host, and has no tabs."""
    stranger = behind_proxy("10.0.1.7")
    for path in ("/heal%09thy", "/now"):
        for host in ("hive.example", "hive.example/healthy?", "hive.example/static/?"):
            assert stranger.get(path, headers={"Host": host}).status_code == 403, (path, host)


def test_a_view_that_takes_too_long_is_unavailable(
    page: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_source, "_READS", "SET LOCAL statement_timeout = '100ms'")
    client = behind_proxy()
    assert client.get("/now").status_code == 200
    with connected(page.team.admin) as connection, connection.transaction():
        connection.execute("LOCK TABLE hivepipe.sessions IN ACCESS EXCLUSIVE MODE")
        for path in ("/now", "/now.json"):
            answer = client.get(path)
            assert answer.status_code == 503
            assert "took more than" in answer.text
            assert "fewer days or one person" in answer.text, "what the fields of a page choose"


def test_an_unknown_path_has_a_page_with_title_and_navigation() -> None:
    answer = behind_proxy().get("/nothing")
    assert answer.status_code == 404
    assert "<title>No such page · hivepipe</title>" in answer.text
    assert '<a href="/now">Now</a>' in answer.text


# ---- OpenID Connect
@pytest.fixture(scope="module")
def running() -> Iterator[Provider]:
    with identity_provider() as provider:
        yield provider


@pytest.fixture
def provider(running: Provider) -> Provider:
    running.reset()
    return running


@contextmanager
def signing_in(provider: Provider, claim: str = "preferred_username") -> Iterator[httpx2.Client]:
    """Serve a page, and yield a browser for it."""

    def app_at(url: str) -> object:
        at = oidc.Provider(provider.issuer, CLIENT, SECRET, claim)
        return team_page(locate("."), SignIn(at, url), url)

    with served(app_at) as url:
        headers = {"Accept": "text/html"}
        with httpx2.Client(
            base_url=url, headers=headers, follow_redirects=True, timeout=60, verify=False
        ) as browser:
            yield browser


@pytest.mark.usefixtures("page")
def test_a_person_signs_in_and_out(provider: Provider) -> None:
    with signing_in(provider) as browser:
        asked = browser.get("/costs?model=a+b&all=1").url
        assert asked.raw_path == b"/costs?model=a+b&all=1"
        shown = browser.get("/now?all=1")
        assert "ann, laptop" in shown.text
        assert "bob," not in shown.text
        cookie = dict(browser.cookies)
        answer = browser.post("/logout", headers={"Origin": str(browser.base_url).rstrip("/")})
        assert "Your session at the identity provider may still be open" in answer.text
        assert re.findall('<a href="([^"]+)', answer.text) == ["/login"]
        again = fetched(browser.base_url.join("/now"), cookie)
        assert again.status_code == 401
        assert browser.get("/now.json", headers={"Accept": "*/*"}).status_code == 401
        assert not provider.refused


@pytest.mark.parametrize(
    ("end", "link"),
    [
        ("https://id.example/end", "https://id.example/end?client_id=the-page"),
        ("https://id.example/end?of=a", "https://id.example/end?of=a&amp;client_id=the-page"),
        ("http://id.example/end", ""),
        ("javascript:alert(1)", ""),
        (7, ""),
    ],
)
def test_who_signs_out_can_end_the_providers_session(
    provider: Provider, end: object, link: str
) -> None:
    provider.metadata = {"end_session_endpoint": end}
    with signing_in(provider) as browser:
        origin = {"Origin": str(browser.base_url).rstrip("/")}
        text = browser.post("/logout?to=https://evil.example", headers=origin).text
        assert re.findall('<a href="([^"]+)', text) == [*filter(None, [link]), "/login"]
        assert browser.post("/logout").status_code == 403


@pytest.mark.usefixtures("page")
def test_a_sign_in_leads_to_no_other_site(provider: Provider) -> None:
    with signing_in(provider) as browser:
        for site in (
            *("//evil.example", "/\\evil.example", "/%2fevil.example", "https://evil.example"),
            *("@evil.example", "\\evil.example", "now\r\nLocation: //evil.example"),
        ):
            browser.cookies.clear()
            assert browser.get("/login", params={"to": site}).url.host == browser.base_url.host


def test_the_address_of_the_sign_in_fits_into_a_proxys_buffer(provider: Provider) -> None:
    """Nginx passes on no more than 4 KiB of headers."""
    with signing_in(provider) as browser:
        answer = browser.get(f"/search?q={'%C3%A4' * 2_000}", follow_redirects=False)
        assert len(answer.headers["Location"]) < 3_500


def begin_sign_in(browser: httpx2.Client, to: str = "") -> httpx2.URL:
    """Begin a sign-in; return the address to which the provider redirects."""
    answer = browser.get("/login", params={"to": to}, follow_redirects=False)
    to_provider = answer.headers["Location"]
    return httpx2.URL(fetched(to_provider).headers["Location"])


def fetched(url: httpx2.URL | str, cookies: dict[str, str] | None = None) -> httpx2.Response:
    """Return the answer of an address on loopback to another browser."""
    return httpx2.get(url, cookies=cookies, timeout=60, verify=False)


@pytest.mark.usefixtures("page")
def test_a_state_is_valid_once_and_for_its_browser(provider: Provider) -> None:
    with signing_in(provider) as browser:
        back = begin_sign_in(browser)
        assert fetched(back).status_code == 400
        cookies = dict(browser.cookies)
        assert browser.get(back).status_code == 200
        assert "ann" in browser.get("/now?all=1").text
        assert fetched(back, cookies).status_code == 400
        with httpx2.Client(base_url=browser.base_url, timeout=60, verify=False) as other:
            begin_sign_in(other)
            assert other.get(back).status_code == 403  # the state belongs to another sign-in
            assert other.get("/now").status_code == 401
        forged = back.copy_set_param("state", "x" * 30)
        with httpx2.Client(base_url=browser.base_url, timeout=60, verify=False) as other:
            begin_sign_in(other)
            assert other.get(forged).status_code == 403


@pytest.mark.usefixtures("page")
def test_claims_may_be_in_the_user_info(provider: Provider) -> None:
    """OpenID Connect Core 5.4: in the code flow, the user info has the claims of the scopes."""
    names = {"email": "bob", "email_verified": True, "preferred_username": "ann"}
    for claim, member in (("preferred_username", "ann"), ("email", "bob")):
        with signing_in(provider, claim) as browser:
            for wrong in ({"sub": "8"}, {"sub": None}, {claim: 7}):
                provider.info = names | wrong
                assert browser.get("/now").status_code == 403, wrong
            provider.info = names
            provider.metadata = {"userinfo_endpoint": "http://evil.example/userinfo"}
            assert browser.get("/now").status_code == 403
            provider.metadata = {}
            assert f'<span class="quiet">{member}</span>' in browser.get("/login").text


@pytest.mark.parametrize("ways", [None, ["client_secret_post"], ["client_secret_basic"]])
@pytest.mark.usefixtures("page")
def test_a_secret_of_any_characters_is_sent_as_the_provider_asks(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, ways: list[str] | None
) -> None:
    secret = "a+b%2F:c/d e\u00e9"  # pragma: allowlist secret
    monkeypatch.setattr(f"{__name__}.SECRET", secret)
    provider.secret = secret
    provider.metadata = {"token_endpoint_auth_methods_supported": ways} if ways else {}
    with signing_in(provider) as browser:
        assert browser.get("/now?all=1").url.path == "/now"
        assert not provider.refused


def test_a_refusal_is_one_line_of_the_log(
    provider: Provider, page: Members, caplog: pytest.LogCaptureFixture
) -> None:
    with signing_in(provider) as browser:
        back = begin_sign_in(browser).copy_with(query=b"error=x&error_description=a%0Ab%1b[31m")
        assert browser.get(back).status_code == 403
    (said,) = [each.getMessage() for each in caplog.records if each.name == "hivepipe.web"]
    assert said == r"sign-in failed: OAuthError: x: a\nb\x1b[31m"


@pytest.mark.usefixtures("page")
def test_two_tabs_of_a_browser_sign_in_at_the_same_time(provider: Provider) -> None:
    with signing_in(provider) as browser:
        first, second = begin_sign_in(browser), begin_sign_in(browser)
        for back in (first, second, first):
            assert browser.get(back).url.path == "/now"
        assert "ann" in browser.get("/now?all=1").text


@pytest.mark.usefixtures("page")
def test_each_tab_comes_to_the_address_that_it_asked_for(provider: Provider) -> None:
    with signing_in(provider) as browser:
        wanted = ("/costs", "/agents?all=1", "/search?q=a%3Fb")
        backs = [begin_sign_in(browser, to) for to in wanted]
        assert [browser.get(back).url.raw_path.decode() for back in backs] == [*wanted]
        assert browser.get(backs[1]).url.path == "/now"  # an address is valid once
        browser.cookies.clear()
        assert browser.get("/costs").url.raw_path == b"/costs"  # without a question mark


@pytest.mark.usefixtures("page")
def test_a_tab_has_the_whole_time_to_sign_in(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = time.monotonic
    with signing_in(provider) as browser:
        begin_sign_in(browser)
        monkeypatch.setattr(time, "monotonic", lambda: clock() + 400)
        second = begin_sign_in(browser)
        monkeypatch.setattr(time, "monotonic", lambda: clock() + 800)
        assert browser.get(second).url.path == "/now"


@pytest.mark.usefixtures("page")
def test_a_code_of_another_sign_in_is_refused(provider: Provider) -> None:
    with (
        signing_in(provider) as browser,
        httpx2.Client(base_url=browser.base_url, timeout=60, verify=False) as victim,
    ):
        stolen = begin_sign_in(browser)
        own = begin_sign_in(victim)
        assert parse_qs(urlsplit(str(own)).query)["code"] != stolen.params["code"]
        injected = own.copy_set_param("code", stolen.params["code"])
        assert victim.get(injected).status_code == 403
        assert provider.refused == ["verifier"]
        assert victim.get("/now").status_code == 401


HOSTILE_TOKENS = {
    "of another issuer": {"claims": {"iss": "https://evil.example"}},
    "for another audience": {"claims": {"aud": "another-page"}},
    "for nobody": {"claims": {"aud": None}},
    "of no issuer": {"claims": {"iss": None}},
    "with another nonce": {"claims": {"nonce": "replayed"}},
    "without a nonce": {"claims": {"nonce": None}},
    "expired": {"claims": {"exp": 1_000_000_000}},
    "without an end": {"claims": {"exp": None}},
    "unsigned": {"signs": "none"},
    "signed with the public key": {"signs": "HS256"},
    "signed with another key": {"signs": "stranger"},
    "signed with a key that is not listed": {"signs": "ES256"},
    "missing": {"has_token": False},
    "without a name": {"claims": {"preferred_username": None}},
    "with a name that is none": {"claims": {"preferred_username": ["ann", "eve"]}},
}


@pytest.mark.usefixtures("page")
def test_a_hostile_token_signs_nobody_in(provider: Provider) -> None:
    with signing_in(provider) as browser:
        for what, hostile in HOSTILE_TOKENS.items():
            provider.reset()
            back = begin_sign_in(browser)
            for name, value in hostile.items():
                setattr(provider, name, value)
            refused = browser.get(back)
            assert refused.status_code == 403, what
            assert "not signed in" in refused.text
            assert browser.get("/now", headers={"Accept": "*/*"}).status_code == 401, what
        provider.reset()
        assert browser.get("/login").url.path == "/now"


@pytest.mark.usefixtures("page")
def test_an_unverified_address_names_no_member(provider: Provider) -> None:
    with signing_in(provider, "email") as browser:
        for verified in (False, None, "true"):
            provider.claims = {"email_verified": verified}
            assert browser.get("/now").status_code == 403, verified
        provider.reset()
        assert browser.get("/login").url.path == "/now"


@pytest.mark.usefixtures("page")
def test_a_list_as_the_claim_is_named_in_the_log(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    with signing_in(provider, "groups") as browser:
        provider.claims = {"groups": ["ann", "admins"]}
        assert browser.get("/now").status_code == 403
    assert "the provider sent a list as groups, not the name of one member" in caplog.text


@pytest.mark.usefixtures("page")
def test_a_provider_with_inconsistent_metadata_is_refused(provider: Provider) -> None:
    with signing_in(provider) as browser:
        for metadata in (
            {"issuer": "https://evil.example"},
            {"issuer": None},
            {"token_endpoint": "http://evil.example/token"},
            {"jwks_uri": "http://10.0.0.1/jwks"},
            {"authorization_endpoint": "javascript:alert(1)"},
        ):
            provider.metadata = metadata
            assert browser.get("/login").status_code == 502, metadata
        provider.reset()
        assert browser.get("/login").url.path == "/now"


WRONG = [None, [], 7, "down for maintenance", {}, {"error": "try later"}, {"keys": None}]


@pytest.mark.usefixtures("page")
def test_a_provider_that_answers_wrongly_is_asked_again(provider: Provider) -> None:
    with signing_in(provider) as browser:
        for part, status in (("openid-configuration", 502), ("jwks", 403), ("token", 403)):
            for wrong in WRONG:
                provider.wrong = {part: wrong}
                refused = browser.get("/login")
                assert refused.status_code == status, (part, wrong)
                assert "not signed in" in refused.text
        provider.wrong = {}
        assert browser.get("/login").url.path == "/now"


@pytest.mark.usefixtures("page")
def test_a_provider_may_have_new_keys_of_the_old_name(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    with signing_in(provider) as browser:
        assert browser.get("/login").url.path == "/now"
        monkeypatch.setattr(provider, "key", provider.stranger)
        assert browser.get("/login").status_code == 403
        assert browser.get("/login").url.path == "/now"


def test_a_provider_without_tls_is_refused() -> None:
    for issuer in ("http://id.acme.example", "ftp://id.acme.example", "id.acme.example", ""):
        with pytest.raises(IdentityError, match="not https"):
            SignIn(oidc.Provider(issuer, CLIENT, SECRET), URL)


def test_a_cookie_of_an_https_page_is_bound_to_its_host(provider: Provider, page: Members) -> None:
    url = "https://hive.example"
    identity = SignIn(oidc.Provider(provider.issuer, CLIENT, SECRET), url)
    client = TestClient(team_page(locate("."), identity, url), base_url=url)
    cookie = client.get("/login", follow_redirects=False).headers["Set-Cookie"]
    assert cookie.startswith("__Host-hivepipe_team=")
    assert {"HttpOnly", "Secure", "Path=/", "SameSite=lax"} <= {*cookie.split("; ")}


# ---- commands
def test_a_page_without_identity_is_refused() -> None:
    for words, why in (
        ("", "exactly one of --header and --oidc"),
        ("--header X --oidc https://id", "exactly one of --header and --oidc"),
        ("--header X", "--header needs --proxy"),
        ("--header X --proxy anybody", "--proxy"),
        ("--oidc https://id.acme", "--oidc needs --client-id and --url"),
    ):
        done = CliRunner().invoke(main, ["team", "page", *words.split()])
        assert done.exit_code
        assert why in done.output, words


def test_an_address_that_no_browser_sends_is_refused() -> None:
    for url in (
        *("hive.acme", "https://", "ftp://hive.acme", "https://hive.acme/team", "https://h:99999"),
        *("https://ann@hive.acme", "https://hive.acme?x", "https://hive.acme#x", "https://[::1"),
    ):
        words = ["team", "page", "--header", "X", "--proxy", "10.0.0.7", "--url", url]
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 64, url
        assert "is not https://HOST" in done.output


def test_an_address_is_compared_as_browsers_send_it() -> None:
    (option,) = [each for each in page_command.params if each.name == "url"]
    for given, sent in (
        ("HTTPS://Hive.Acme:443/", "https://hive.acme"),
        ("http://127.0.0.1:80", "http://127.0.0.1"),
        ("https://h\u00f6he.example:8443", "https://xn--hhe-sna.example:8443"),
        ("http://[::1]:9183", "http://[::1]:9183"),
        ("", ""),
    ):
        assert option.type.convert(given, None, None) == sent


def test_a_page_without_its_login_or_secret_is_refused(members: Members) -> None:
    words = ["team", "page", "--oidc", "https://id", "--client-id", "x", "--url", "https://hive"]
    for given in (words, ["team", "page", "--header", "X", "--proxy", "10.0.0.7"]):
        done = CliRunner().invoke(main, given)
        assert done.exit_code == 1
        assert "hivepipe credentials set" in done.output


def test_the_command_lists_audit_entries(page: Members) -> None:
    page.output("bob/desk", "session", "show", "ann-1", "--team")
    reads = page.output("ann/desk", "team", "audit")["reads"]
    assert [(each["reader"], each["session_id"]) for each in reads] == [("bob", "ann-1")]
    assert reads[0]["at"].endswith("Z")
    assert page.output("bob/desk", "team", "audit")["reads"] == []
    every = json.loads(run_as_admin(page, "team", "audit", "--all", "--json"))["reads"]
    assert {(each["reader"], each["owner"]) for each in every} == {("bob", "ann")}
