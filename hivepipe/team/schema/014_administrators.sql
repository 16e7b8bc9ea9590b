-- The login that runs `team init` is an administrator. PostgreSQL 16 makes the creator of a role its
-- member, PostgreSQL 15 does not.
GRANT hivepipe_admin TO hivepipe_owner;
