-- Costs look up the copies of a message. The statistics of a partitioned table let the planner expect
-- few rows, so without this index it reads all rows of the home for each message of a session.
CREATE INDEX usage_by_message ON hivepipe.usage (home, message_id);
