-- Each look at a board asks which channels are in trouble, also while many messages wait.
CREATE INDEX notify_outbox_failing ON notify_outbox (channel, state, failing_since)
    WHERE state = 'dead' OR failing_since IS NOT NULL;
