"""Tokens of package registries."""

from hivepipe.redaction.rule import START, WORDS, token

PACKAGE_REGISTRIES = (
    token(
        "npm",
        r"npm_[A-Za-z0-9]{36,}",
        "«npm_<A36>»",
        "//registry.npmjs.org/:_authToken=«npm_<A36>»",
    ),
    token("pypi", r"pypi-[A-Za-z0-9_-]{50,}", "«pypi-AgEIcHlwaS5vcmc<w70>»"),
    token("rubygems", r"rubygems_[a-f0-9]{48}", "«rubygems_<h48>»"),
    token(
        "crates",
        r"cio[A-Za-z0-9]{32}\b",
        "«cio<A32>»",
        sieve=START + "cio[A-Za-z0-9]",
        unless="[a-z]+",
    ),
    token("nuget", r"oy2[a-z0-9]{43}\b", "«oy2<l43>»"),
    token("clojars", r"CLOJARS_[a-z0-9]{60}", "«CLOJARS_<l60>»"),
    token("docker", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{27,}", "«dckr_pat_<w27>»"),
    token(
        "docker_swarm",
        r"SWM(?:TKN-1-[a-z0-9]{50,60}-[a-z0-9]{24,30}|KEY-1-(?:[A-Za-z0-9+/]|%2[BbFf]){40,50})",
        "«SWMTKN-1-<l50>-<l25>»",
        "«SWMKEY-1-<b43>»",
        sieve="SWM(?:TKN|KEY)-1-",
    ),
    token(
        "packagist",
        r"packagist_(?:ort|out|ac[sk])_[0-9a-f]{28,}",
        "«packagist_ort_<h68>»",
        sieve="packagist_",
    ),
    token("cloudsmith", r"csa_[a-f0-9]{30}[A-Za-z0-9]{6}", "«csa_<h36>»", sieve="csa_[a-f0-9]"),
    token(
        "thunderstore", r"tss_[A-Za-z0-9_-]{20,}", "«tss_<w28>»", sieve=START + "tss_", unless=WORDS
    ),
    token(
        "artifactory",
        r"(?:AKCp[A-Za-z0-9]{60,}|cmVmd[A-Za-z0-9]{59})",
        "«AKCp<A69>»",
        "«cmVmd<A59>»",
        sieve="AKCp|cmVmd",
    ),
)
