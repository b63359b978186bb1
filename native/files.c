/* Redirection of the service account's files, which clients in pods read from a fixed path, to the run's own files; and
 * detection of timers that keep real time, which the run reports. */

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);

/* Return the path of the run's file for a file of the service account, and any other path unchanged. */
static const char *redirected_path(const char *path, char *room) {
    static const char place[] = "/var/run/secrets/kubernetes.io/serviceaccount";
    static const char same_place[] = "/run/secrets/kubernetes.io/serviceaccount";
    size_t length = 0;
    if (path && strncmp(path, place, sizeof place - 1) == 0) length = sizeof place - 1;
    if (path && strncmp(path, same_place, sizeof same_place - 1) == 0) length = sizeof same_place - 1;
    const char *folder = length && is_virtual() ? getenv("BATKUBE_SERVICE_ACCOUNT") : NULL;
    if (!folder || (path[length] != '/' && path[length] != '\0')) return path;
    int written = snprintf(room, PATH_MAX, "%s%s", folder, path + length);
    return written < PATH_MAX ? room : path;
}

#define MODE_OF(flags, last)                  \
    mode_t mode = 0;                          \
    if ((flags) & (O_CREAT | O_TMPFILE)) {    \
        va_list list;                         \
        va_start(list, last);                 \
        mode = (mode_t)va_arg(list, int);     \
        va_end(list);                         \
    }

int open(const char *path, int flags, ...) {
    char room[PATH_MAX];
    MODE_OF(flags, flags)
    REAL(open);
    return real(redirected_path(path, room), flags, mode);
}

int open64(const char *path, int flags, ...) {
    char room[PATH_MAX];
    MODE_OF(flags, flags)
    REAL(open64);
    return real(redirected_path(path, room), flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    char room[PATH_MAX];
    MODE_OF(flags, flags)
    REAL(openat);
    return real(folder, redirected_path(path, room), flags, mode);
}

int openat64(int folder, const char *path, int flags, ...) {
    char room[PATH_MAX];
    MODE_OF(flags, flags)
    REAL(openat64);
    return real(folder, redirected_path(path, room), flags, mode);
}

int __open_2(const char *path, int flags) { return open(path, flags); }

int __open64_2(const char *path, int flags) { return open64(path, flags); }

FILE *fopen(const char *restrict path, const char *restrict mode) {
    char room[PATH_MAX];
    REAL(fopen);
    return real(redirected_path(path, room), mode);
}

FILE *fopen64(const char *restrict path, const char *restrict mode) {
    char room[PATH_MAX];
    REAL(fopen64);
    return real(redirected_path(path, room), mode);
}

int access(const char *path, int mode) {
    char room[PATH_MAX];
    REAL(access);
    return real(redirected_path(path, room), mode);
}

int stat(const char *restrict path, struct stat *restrict to) {
    char room[PATH_MAX];
    REAL(stat);
    return real(redirected_path(path, room), to);
}

int stat64(const char *restrict path, struct stat64 *restrict to) {
    char room[PATH_MAX];
    REAL(stat64);
    return real(redirected_path(path, room), to);
}

/* Timers that keep real time */

unsigned alarm(unsigned seconds) {
    if (seconds) record_unsupported(FEATURE_ITIMER);
    REAL(alarm);
    return real(seconds);
}

int setitimer(__itimer_which_t which, const struct itimerval *restrict to, struct itimerval *restrict before) {
    if (which == ITIMER_REAL && to && (to->it_value.tv_sec || to->it_value.tv_usec)) record_unsupported(FEATURE_ITIMER);
    REAL(setitimer);
    return real(which, to, before);
}

int timerfd_settime(int timer, int flags, const struct itimerspec *to, struct itimerspec *before) {
    if (as_ns(&to->it_value)) record_unsupported(FEATURE_TIMERFD);
    REAL(timerfd_settime);
    return real(timer, flags, to, before);
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *restrict to, struct itimerspec *restrict before) {
    if (as_ns(&to->it_value)) record_unsupported(FEATURE_TIMERFD);
    REAL(timer_settime);
    return real(timer, flags, to, before);
}
