"""The answer as pure functions on rows: noise, effects, verdicts. No SQL, no printing."""
