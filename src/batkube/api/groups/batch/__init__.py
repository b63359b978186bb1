"""Jobs and CronJobs."""
