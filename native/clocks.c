/* Reading clocks, and sleeping. */

#include "clock.h"

#include <errno.h>
#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

static bool is_wall(clockid_t clock) {
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

static bool is_monotonic(clockid_t clock) {
    return clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_MONOTONIC_RAW ||
           clock == CLOCK_BOOTTIME;
}

int clock_gettime(clockid_t clock, struct timespec *to) {
    if (is_virtual() && is_wall(clock)) {
        *to = as_timespec(virtual_now());
        return 0;
    }
    if (is_virtual() && is_monotonic(clock)) {
        *to = as_timespec(virtual_now() - page->epoch);
        return 0;
    }
    REAL(clock_gettime);
    return real(clock, to);
}

int gettimeofday(struct timeval *restrict to, void *restrict zone) {
    if (!is_virtual()) {
        REAL(gettimeofday);
        return real(to, zone);
    }
    int64_t now = virtual_now();
    *to = (struct timeval){.tv_sec = now / SECOND, .tv_usec = now % SECOND / 1000};
    return 0;
}

time_t time(time_t *to) {
    time_t now;
    if (is_virtual()) {
        now = (time_t)(virtual_now() / SECOND);
    } else {
        REAL(time);
        now = real(NULL);
    }
    if (to) *to = now;
    return now;
}

int timespec_get(struct timespec *to, int base) {
    if (is_virtual() && base == TIME_UTC) {
        *to = as_timespec(virtual_now());
        return base;
    }
    REAL(timespec_get);
    return real(to, base);
}

/* Sleep until a virtual time; return 0 or an error number, such as EINTR. */
static int sleep_until(int64_t deadline) {
    REAL(poll);
    while (virtual_now() < deadline) {
        struct timed_wait timed;
        if (!begin_timed_wait(&timed, deadline)) return ENOMEM;
        struct pollfd wake_up = {.fd = timed.wake_socket, .events = POLLIN};
        int count = real(&wake_up, 1, LIVENESS_CHECK_MS);
        int problem = errno;
        if (count == 0) exit_without_coordinator();
        end_timed_wait(&timed);
        drain_wake_socket(timed.wake_socket);
        if (count < 0) return problem;
    }
    return 0;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *span, struct timespec *rest) {
    if (!is_virtual() || !(is_wall(clock) || is_monotonic(clock))) {
        REAL(clock_nanosleep);
        return real(clock, flags, span, rest);
    }
    if (span->tv_nsec < 0 || span->tv_nsec >= SECOND || span->tv_sec < 0) return EINVAL;
    int64_t deadline = flags & TIMER_ABSTIME ? deadline_at(span) : deadline_after(as_ns(span));
    int problem = sleep_until(deadline);
    if (problem == ENOMEM) {
        REAL(clock_nanosleep);
        return real(clock, flags, span, rest);
    }
    if (problem && rest && !(flags & TIMER_ABSTIME)) {
        int64_t left = deadline - virtual_now();
        *rest = as_timespec(left > 0 ? left : 0);
    }
    return problem;
}

int nanosleep(const struct timespec *span, struct timespec *rest) {
    int problem = clock_nanosleep(CLOCK_MONOTONIC, 0, span, rest);
    if (!problem) return 0;
    errno = problem;
    return -1;
}

int usleep(useconds_t span) {
    struct timespec as = as_timespec((int64_t)span * 1000);
    return nanosleep(&as, NULL);
}

unsigned sleep(unsigned seconds) {
    struct timespec span = {.tv_sec = seconds}, rest = {0};
    if (nanosleep(&span, &rest) == 0) return 0;
    return (unsigned)(rest.tv_sec + (rest.tv_nsec > 0));
}
