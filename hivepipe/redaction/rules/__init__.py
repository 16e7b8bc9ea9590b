"""All rules, the most telling first: where two find the same secret, the first names it."""

from hivepipe.redaction.rules.ai_providers import AI_PROVIDERS
from hivepipe.redaction.rules.amazon import AMAZON
from hivepipe.redaction.rules.chat_and_office import CHAT_AND_OFFICE
from hivepipe.redaction.rules.clouds import CLOUDS
from hivepipe.redaction.rules.code_hosts import CODE_HOSTS
from hivepipe.redaction.rules.emails import EMAILS
from hivepipe.redaction.rules.headers import HEADERS
from hivepipe.redaction.rules.named_secrets import NAMED_SECRETS
from hivepipe.redaction.rules.package_registries import PACKAGE_REGISTRIES
from hivepipe.redaction.rules.passwords import PASSWORDS
from hivepipe.redaction.rules.payments import PAYMENTS
from hivepipe.redaction.rules.private_keys import PRIVATE_KEYS
from hivepipe.redaction.rules.services import SERVICES
from hivepipe.redaction.rules.values import VALUES

RULES = (
    *PRIVATE_KEYS,
    *AMAZON,
    *AI_PROVIDERS,
    *CODE_HOSTS,
    *PACKAGE_REGISTRIES,
    *CLOUDS,
    *CHAT_AND_OFFICE,
    *PAYMENTS,
    *SERVICES,
    *HEADERS,
    *PASSWORDS,
    *NAMED_SECRETS,
    *VALUES,
    *EMAILS,
)
