"""Jobs and cron jobs."""
