"""CronJob schedules: parser, next activation times, time zones."""
