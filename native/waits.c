/* Waiting for files with a timeout: the wake-up socket is added to the files. */

#include "clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

/* Variants with an array size, which compilers call with -D_FORTIFY_SOURCE. */
int __poll_chk(struct pollfd *files, nfds_t count, int timeout, size_t size);
int __ppoll_chk(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t size);

static int real_ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    REAL(ppoll);
    int ready = real(files, count, timeout, mask);
    if (is_virtual()) await_arrival();
    return ready;
}

/* Wait until one of the files is ready, or until a virtual time. */
static int poll_until(struct pollfd *files, nfds_t count, int64_t deadline, const sigset_t *mask) {
    static const struct timespec at_once, liveness_check = {.tv_sec = LIVENESS_CHECK_MS / 1000};
    struct pollfd few[64], *all = few;
    if (count >= sizeof few / sizeof *few && !(all = malloc((count + 1) * sizeof *all))) {
        errno = ENOMEM;
        return -1;
    }
    memcpy(all, files, count * sizeof *all);
    int ready;
    for (;;) {
        struct timed_wait timed;
        if (virtual_now() >= deadline) {
            ready = real_ppoll(all, count, &at_once, mask);
            break;
        }
        if (!begin_timed_wait(&timed, deadline)) {
            struct timespec span = as_timespec(deadline - virtual_now());
            ready = real_ppoll(all, count, &span, mask);
            break;
        }
        all[count] = (struct pollfd){.fd = timed.wake_socket, .events = POLLIN};
        ready = real_ppoll(all, count + 1, &liveness_check, mask);
        int problem = errno;
        if (ready == 0) exit_without_coordinator();
        end_timed_wait(&timed);
        if (ready > 0 && all[count].revents) {
            drain_wake_socket(timed.wake_socket);
            ready--;
        }
        errno = problem;
        if (ready) break;
    }
    for (nfds_t each = 0; ready >= 0 && each < count; each++) files[each].revents = all[each].revents;
    if (all != few) free(all);
    return ready;
}

int poll(struct pollfd *files, nfds_t count, int timeout) {
    if (!is_virtual()) {
        REAL(poll);
        return real(files, count, timeout);
    }
    if (timeout <= 0) return real_ppoll(files, count, timeout ? NULL : &(struct timespec){0}, NULL);
    return poll_until(files, count, deadline_after((int64_t)timeout * 1000000), NULL);
}

int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    if (!is_virtual() || !timeout || as_ns(timeout) <= 0) return real_ppoll(files, count, timeout, mask);
    return poll_until(files, count, deadline_after(as_ns(timeout)), mask);
}

int __poll_chk(struct pollfd *files, nfds_t count, int timeout, size_t size) {
    if (size / sizeof *files < count) abort();
    return poll(files, count, timeout);
}

int __ppoll_chk(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t size) {
    if (size / sizeof *files < count) abort();
    return ppoll(files, count, timeout, mask);
}

static int real_pselect(int count, fd_set *read, fd_set *write, fd_set *except, const struct timespec *timeout,
                        const sigset_t *mask) {
    REAL(pselect);
    int ready = real(count, read, write, except, timeout, mask);
    if (is_virtual()) await_arrival();
    return ready;
}

static void copy(fd_set *to, const fd_set *from) {
    if (from) {
        *to = *from;
    } else {
        FD_ZERO(to);
    }
}

/* Like poll_until; a set of select has FD_SETSIZE files. */
static int select_until(int count, fd_set *read, fd_set *write, fd_set *except, int64_t deadline,
                        const sigset_t *mask) {
    static const struct timespec at_once, liveness_check = {.tv_sec = LIVENESS_CHECK_MS / 1000};
    for (;;) {
        struct timed_wait timed;
        if (virtual_now() >= deadline) return real_pselect(count, read, write, except, &at_once, mask);
        if (!begin_timed_wait(&timed, deadline) || timed.wake_socket >= FD_SETSIZE || count > FD_SETSIZE) {
            struct timespec span = as_timespec(deadline - virtual_now());
            record_unsupported(FEATURE_MORE_WAITS);
            return real_pselect(count, read, write, except, &span, mask);
        }
        fd_set to_read, to_write, to_except;
        copy(&to_read, read);
        copy(&to_write, write);
        copy(&to_except, except);
        FD_SET(timed.wake_socket, &to_read);
        int all = count > timed.wake_socket ? count : timed.wake_socket + 1;
        int ready = real_pselect(all, &to_read, &to_write, &to_except, &liveness_check, mask);
        int problem = errno;
        if (ready == 0) exit_without_coordinator();
        end_timed_wait(&timed);
        if (ready > 0 && FD_ISSET(timed.wake_socket, &to_read)) {
            drain_wake_socket(timed.wake_socket);
            FD_CLR(timed.wake_socket, &to_read);
            ready--;
        }
        errno = problem;
        if (ready == 0) continue;
        if (ready > 0) {
            if (read) *read = to_read;
            if (write) *write = to_write;
            if (except) *except = to_except;
        }
        return ready;
    }
}

int pselect(int count, fd_set *read, fd_set *write, fd_set *except, const struct timespec *timeout,
            const sigset_t *mask) {
    if (!is_virtual() || !timeout || as_ns(timeout) <= 0) {
        return real_pselect(count, read, write, except, timeout, mask);
    }
    return select_until(count, read, write, except, deadline_after(as_ns(timeout)), mask);
}

int select(int count, fd_set *read, fd_set *write, fd_set *except, struct timeval *timeout) {
    int64_t span = timeout ? timeout->tv_sec * SECOND + timeout->tv_usec * 1000 : 0;
    if (!is_virtual() || !timeout || span <= 0) {
        REAL(select);
        int ready = real(count, read, write, except, timeout);
        if (is_virtual()) await_arrival();
        return ready;
    }
    int64_t deadline = deadline_after(span);
    int ready = select_until(count, read, write, except, deadline, NULL);
    /* Linux writes the remaining time into the timeout, and some programs rely on it. */
    int64_t left = deadline - virtual_now();
    *timeout = (struct timeval){0};
    if (left > 0) *timeout = (struct timeval){.tv_sec = left / SECOND, .tv_usec = left % SECOND / 1000};
    return ready;
}

static int epoll_now(int set, struct epoll_event *events, int room) {
    REAL(epoll_wait);
    return real(set, events, room, 0);
}

/* An epoll set is itself a file that can be polled. No event is taken from it before the announced piece has arrived,
 * so that a connection is reported once, in however many segments its data arrived. */
static int epoll_until(int set, struct epoll_event *events, int room, int64_t deadline, const sigset_t *mask) {
    for (;;) {
        struct pollfd all = {.fd = set, .events = POLLIN};
        int ready = deadline == NEVER ? real_ppoll(&all, 1, NULL, mask) : poll_until(&all, 1, deadline, mask);
        if (ready < 0) return ready;
        int count = epoll_now(set, events, room);
        if (count || !ready) return count;
    }
}

static int epoll_after(int set, struct epoll_event *events, int room, int milliseconds, const sigset_t *mask) {
    int64_t deadline = milliseconds < 0 ? NEVER : deadline_after((int64_t)milliseconds * 1000000);
    return epoll_until(set, events, room, deadline, mask);
}

int epoll_pwait(int set, struct epoll_event *events, int room, int timeout, const sigset_t *mask) {
    if (!is_virtual()) {
        REAL(epoll_pwait);
        return real(set, events, room, timeout, mask);
    }
    return epoll_after(set, events, room, timeout, mask);
}

int epoll_wait(int set, struct epoll_event *events, int room, int timeout) {
    if (!is_virtual()) {
        REAL(epoll_wait);
        return real(set, events, room, timeout);
    }
    return epoll_after(set, events, room, timeout, NULL);
}

int epoll_pwait2(int set, struct epoll_event *events, int room, const struct timespec *timeout, const sigset_t *mask) {
    if (!is_virtual()) {
        REAL(epoll_pwait2);
        return real(set, events, room, timeout, mask);
    }
    return epoll_until(set, events, room, timeout ? deadline_after(as_ns(timeout)) : NEVER, mask);
}
