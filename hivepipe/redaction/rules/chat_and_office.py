"""Tokens of chats, bots, documents and tables."""

from hivepipe.redaction.rule import BASE64, COLON, SLASH, START, WORDS, token

CHAT_AND_OFFICE = (
    token(
        "slack",
        r"(?:xox[a-z]-[A-Za-z0-9-]{8,}|xoxe\.xox[bp]-[A-Za-z0-9-]{20,}"
        r"|xapp-[0-9]-[A-Za-z0-9]+-[0-9]+-[A-Za-z0-9]+)",
        "«xoxb-<d12>-<d12>-<A24>»",
        "«xoxp-<d12>-<d12>-<d12>-<h32>»",
        "«xapp-1-A<u10>-<d13>-<h64>»",
        "«xoxe.xoxp-1-<A163>»",
        sieve="xox[a-z][-.]|xapp-",
        unless=WORDS,
    ),
    token(
        "slack_webhook",
        rf"https?{COLON}{SLASH}{{2}}hooks\.slack\.com{SLASH}(?:services|workflows|triggers)"
        rf"{SLASH}{BASE64}{{40,}}",
        "«https://hooks.slack.com/services/T<u8>/B<u10>/<A24>»",
        sieve=r"hooks\.slack\.com",
    ),
    token(
        "discord_webhook",
        rf"https?{COLON}{SLASH}{{2}}(?:\w+\.)?discord(?:app)?\.com{SLASH}api{SLASH}webhooks"
        rf"{SLASH}[0-9]+{SLASH}[A-Za-z0-9_-]{{50,}}",
        "«https://discord.com/api/webhooks/<d18>/<w68>»",
        sieve=r"discord(?:app)?\.com",
    ),
    token(
        "discord_bot",
        r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}",
        "«M<A25>.<A6>.<A38>»",
        sieve=START + r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]",
    ),
    token(
        "teams_webhook",
        rf"https{COLON}{SLASH}{{2}}[a-z0-9]+\.webhook\.office\.com{SLASH}webhookb2{SLASH}"
        rf"(?:[A-Za-z0-9@-]|%40|{SLASH}){{60,}}",
        "«https://corp.webhook.office.com/webhookb2/<h8>-<h4>-<h4>-<h4>-<h12>@<h8>-<h4>-<h4>-<h4>"
        "-<h12>/IncomingWebhook/<h32>/<h8>-<h4>-<h4>-<h4>-<h12>»",
        sieve=r"webhook\.office\.com",
    ),
    token(
        "telegram",
        rf"(?:bot)?[0-9]{{8,10}}{COLON}A[A-Za-z0-9_-]{{34}}",
        "«<d10>:A<A34>»",
        "«bot<d10>:A<A34>»",
        sieve=rf"[0-9]{COLON}A[A-Za-z0-9_-]",
    ),
    token(
        "notion",
        r"ntn_[0-9]{11}[A-Za-z0-9]{35}|secret_[A-Za-z0-9]{43}\b",
        "«ntn_<d11><A35>»",
        "«secret_<A43>»",
        sieve="ntn_[0-9]|secret_[A-Za-z0-9]",
    ),
    token("figma", r"fig[dour]_[A-Za-z0-9_-]{36,}", "«figd_<w40>»", sieve="fig[dour]_"),
    token(
        "airtable",
        r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}",
        "«pat<A14>.<h64>»",
        sieve=r"pat[A-Za-z0-9]{14}\.[a-f0-9]",
    ),
    token(
        "asana",
        rf"[12]{SLASH}[0-9]{{14,17}}(?:{SLASH}[0-9]{{14,17}})?{COLON}[a-f0-9]{{32}}",
        "«1/<d16>:<h32>»",
        sieve=rf"[12]{SLASH}[0-9]{{14}}",
    ),
    token("typeform", r"tfp_[A-Za-z0-9_.=-]{40,}", "«tfp_<w59>»"),
    token("readme", r"rdme_[a-z0-9]{70}", "«rdme_<l70>»"),
    token("frameio", r"fio-u-[A-Za-z0-9_=-]{64}", "«fio-u-<w64>»"),
    token("contentful", r"CFPAT-[A-Za-z0-9_-]{43}", "«CFPAT-<w43>»"),
    token("canva", r"cnvca[a-zA-Z0-9_-]{51}", "«cnvca<w51>»"),
    token("miro", r"eyJtaXJv[A-Za-z0-9_-]{30,}", "«eyJtaXJv<A30>_<w27>»"),
    token("onesignal", r"os_v2_(?:app|org)_[a-z2-7]{100,}", "«os_v2_app_<a103>»", sieve="os_v2_"),
    token("rootly", r"rootly_[a-f0-9]{64}", "«rootly_<h64>»"),
    token("pinterest", r"pina_[A-Za-z0-9_-]{20,}", "«pina_<w60>»", unless=WORDS),
    token("val_town", r"vtwn_[A-Za-z0-9_-]{20,}", "«vtwn_<w27>»", unless=WORDS),
    token("wakatime", r"waka_[a-z0-9-]{36,}", "«waka_<l36>»"),
)
