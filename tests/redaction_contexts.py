"""Contexts of passwords and of keys without a fixed form, written independently of the rules."""

KEY_FORMS = (
    *("<A32>", "<h32>", "<h40>", "<l40>", "<u32>", "<b40>", "<u16>", "<w43>", "<A24>"),
    *("<h8>-<h4>-<h4>-<h4>-<h12>", "<A20>", "<l12>!@#$<l10>%^&*(<l8>-_=+)<l10>", "base64:<b43>="),
    "<h64>",
)
PASSWORDS = (
    *("hunter2", "Tr0ub4dor&3", "aB3$kd9x", "S3cr3t!pw", "correct-horse-7", "P@ssw0rd99"),
    *("xK9#mQ2z", "letmein42", "Sommer2026!", "qwerty123", "hunter2secret", "7f3kQz!"),
    "geheim_1x",
)
KEY_NAMES = (
    *("API_KEY", "api_key", "SHOP_API_TOKEN", "client_secret", "STEAM_API_KEY", "MAPS_KEY"),
    *("GITHUB_PAT", "authToken", "secret_key", "access-key", "ACME_AUTH"),
)
KEY_CONTEXTS = (
    "export {N}={V}", "{N}={V}", '{N} = "{V}"', "{N}: '{V}'", "{N}: {V}", "  - {N}={V}",
    '"{N}": "{V}"', '{{"{N}":"{V}","x":1}}', "define('{N}', '{V}');",
    'os.environ.setdefault("{N}", "{V}")', "os.environ['{N}'] = '{V}'",
    'os.getenv("{N}", "{V}")', 'const {N} = "{V}";', 'let {N}: string = "{V}"',
    'var {N} string = "{V}"', '{N} := "{V}"', 'const {N}: &str = "{V}";', '#define {N} "{V}"',
    "ENV {N} {V}", "ENV {N}={V}", "set -gx {N} {V}", '$env:{N} = "{V}"',
    'private static final String {N} = "{V}";', 'req.Header.Set("X-Api-Key", "{V}")',
    "localStorage.setItem('token', '{V}')", '"args": ["--api-key", "{V}"]',
    "shop --token {V} list", "shop --api-key={V}", "- name: {N}\n  value: {V}\n",
    '- name: {N}\n  value: "{V}"\n', 'curl -H "X-Api-Key: {V}" https://x.io',
    'curl "https://x.io/a?api_key={V}&b=1"', "my api key is {V}", "the token is {V}, use it",
    "I set the API key to `{V}`", "API key: {V}", "**API key:** `{V}`", "| API key | {V} |",
    "{N} ?= {V}", '{N}: "{V}" # prod', '<add key="{N}" value="{V}" />', "<{N}>{V}</{N}>",
    "spring.shop.api-key={V}", "shop.api.key={V}", "{N}|{V}", "setx {N} {V}",
    'config.{N} = "{V}"', '{N} => "{V}",', "  {N}: |\n    {V}\n",
    "mein API-Schlüssel lautet {V}", "API 密钥是{V}", "ma clé API est {V}",
    "mi clave de API es {V}", "Authorization: Bearer {V}", "Authorization: Token {V}",
    '{N}="{V}" npm publish', "docker run -e {N}={V} x", "fly secrets set {N}={V}",
    "gh secret set {N} --body {V}", "kubectl create secret generic x --from-literal={N}={V}",
    "heroku config:set {N}={V}", "+{N}={V}", "     3\t{N}={V}", 'secrets.{N} = "{V}"',
    ':{N} => "{V}"', '%{{ {N}: "{V}" }}', "{N} = '{V}' ; prod", 'api_key("{V}")',
    'ApiClient(api_key="{V}")', 'new Client({{ apiKey: "{V}" }})',
)  # fmt: skip
PASSWORD_NAMES = (
    *("password", "DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "passwd", "db_pass", "adminPassword"),
    "SMTP_PASS",
)
PASSWORD_CONTEXTS = (
    "export {N}={V}", "{N}={V}", '{N} = "{V}"', "{N}: '{V}'", "{N}: {V}", '"{N}": "{V}"',
    "define('{N}', '{V}');", 'os.environ.setdefault("{N}", "{V}")', 'os.getenv("{N}", "{V}")',
    'const {N} = "{V}";', 'var {N} string = "{V}"', 'const {N}: &str = "{V}";',
    '#define {N} "{V}"', "ENV {N} {V}", "- name: {N}\n  value: {V}\n",
    "{N} = {V}\nuser = ana\n", "[client]\nuser=ana\n{N}={V}\n",
    "the password is {V} and the user is ana", "the password is {V}", 'password is "{V}"',
    "the password is `{V}`", "Password: {V} (change it)", "pw: {V}", "pass: {V}",
    "- **Password:** {V}", "| Password | {V} |", "Das Passwort ist {V}.",
    "le mot de passe est {V}, merci", "la contraseña es {V}", "a senha é {V}", "密码是{V}",
    "パスワードは{V}です", "mysql -u ana -p{V} shop", "mongosh -u ana -p {V} shop",
    "ldapsearch -D cn=a -w {V} -b x", "zip -P {V} a.zip b", "7z a -p{V} a.7z",
    "openssl rsa -passin pass:{V} -in k", "sqlcmd -S d -U sa -P {V}",
    "echo 'ana:{V}' | chpasswd", "echo {V} | sudo -S ls",
    'ConvertTo-SecureString "{V}" -AsPlainText', "curl -u ana:{V} https://x.io",
    "sshpass -p {V} ssh a@b", "redis-cli -a {V} ping", "postgres://ana:{V}@db:5432/x",
    "<password>{V}</password>", "machine x.io login ana password {V}",
    "machine x.io\n  login ana\n  password {V}\n", "ALTER USER ana WITH PASSWORD '{V}';",
    "spring.datasource.password={V}", "login with ana / {V}", "PASSWORD={V} make",
    "docker run -e {N}={V} pg", '"--password", "{V}"', "mysql --password={V} x",
    "mysql --password {V} x", 'connect(user="a", password="{V}")', "password:\n  {V}\n",
    "user: ana\npassword: {V}\n", "IDENTIFIED BY '{V}'", "Password={V};Server=x",
    "use password {V} for the login", "change the password to '{V}'",
    'psql "host=db password={V} user=a"',
)  # fmt: skip
