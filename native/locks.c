/* Waiting for other threads, with a timeout: conditions, semaphores, mutexes, futexes.
 *
 * No bell can be waited for together with those. So each process that needs it has one more thread, the keeper, which
 * has the bell and wakes whoever's time has come. The clock moves only when all threads are asleep; one that is woken
 * is therefore in its wait already, and no wake-up gets lost. */

#include "clock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long real_syscall(long number, long a, long b, long c, long d, long e, long f) {
    static long (*real)(long, ...);
    if (!real) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return real(number, a, b, c, d, e, f);
}

static long futex(void *word, int operation, uint32_t value) {
    return real_syscall(SYS_futex, (long)word, operation, value, 0, 0, 0);
}

/* A wait that the keeper ends: for a condition, or else for a word of memory. */
struct kept_wait {
    int64_t deadline;
    pthread_cond_t *condition;
    void *word;
    int operation;          /* how the word is woken: within the process or beyond */
    _Atomic bool is_over;   /* whether its time has come */
    struct kept_wait *next;
};

static pthread_mutex_t keeping = PTHREAD_MUTEX_INITIALIZER;
static struct kept_wait *waits;
static struct wait_slot *keeper_slot;
static int keeper_bell = -1;
static pid_t keeper_of;

/* Tell the coordinator when the keeper is needed next; called with `keeping`. */
static void announce(void) {
    int64_t next = NEVER;
    for (struct kept_wait *each = waits; each; each = each->next) {
        if (!atomic_load(&each->is_over) && each->deadline < next) next = each->deadline;
    }
    atomic_store(&keeper_slot->deadline, next);
}

static void end_wait(struct kept_wait *wait) {
    atomic_store(&wait->is_over, true);
    if (wait->condition) {
        pthread_cond_broadcast(wait->condition);
    } else {
        futex(wait->word, wait->operation, INT_MAX);
    }
}

static void *keep(void *unused) {
    static __typeof__(poll) *real_poll;
    real_poll = (__typeof__(poll) *)dlsym(RTLD_NEXT, "poll");
    for (;;) {
        struct pollfd bell = {.fd = keeper_bell, .events = POLLIN};
        if (real_poll(&bell, 1, GLANCE_MS) == 0) end_if_abandoned();
        empty_bell(keeper_bell);
        pthread_mutex_lock(&keeping);
        for (struct kept_wait *each = waits; each; each = each->next) {
            if (!atomic_load(&each->is_over) && each->deadline <= virtual_now()) end_wait(each);
        }
        announce();
        pthread_mutex_unlock(&keeping);
    }
    return unused;
}

/* Start the keeper; called with `keeping`. */
static bool start_keeper(void) {
    if (keeper_of == getpid()) return keeper_slot != NULL;
    keeper_of = getpid();
    waits = NULL;  /* after a fork: those of threads that are not here */
    unsigned number;
    keeper_slot = take_slot((pid_t)real_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0), &number);
    if (!keeper_slot) return false;
    if (keeper_bell >= 0) close(keeper_bell);
    keeper_bell = open_bell(number);
    /* A signal is for the program's own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    bool is_running = keeper_bell >= 0 && pthread_create(&thread, NULL, keep, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!is_running) {
        leave_slot(keeper_slot);
        keeper_slot = NULL;
        lacking(LACK_SLOTS);
        return false;
    }
    pthread_detach(thread);
    return true;
}

/* Begin a wait; false if it cannot be had on virtual time. */
static bool begin_wait(struct kept_wait *wait) {
    pthread_mutex_lock(&keeping);
    bool is_kept = start_keeper();
    if (is_kept) {
        wait->next = waits;
        waits = wait;
        announce();
    }
    pthread_mutex_unlock(&keeping);
    return is_kept;
}

static void finish_wait(void *ended) {
    struct kept_wait *wait = ended;
    pthread_mutex_lock(&keeping);
    for (struct kept_wait **each = &waits; *each; each = &(*each)->next) {
        if (*each == wait) {
            *each = wait->next;
            break;
        }
    }
    announce();
    pthread_mutex_unlock(&keeping);
}

/* Conditions */

static int wait_for_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline, bool *is_kept) {
    if (virtual_now() >= deadline) return ETIMEDOUT;
    struct kept_wait wait = {.deadline = deadline, .condition = condition};
    *is_kept = begin_wait(&wait);
    if (!*is_kept) return 0;
    int problem;
    pthread_cleanup_push(finish_wait, &wait);
    problem = pthread_cond_wait(condition, mutex);
    pthread_cleanup_pop(1);
    return problem ? problem : atomic_load(&wait.is_over) ? ETIMEDOUT : 0;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict at) {
    bool is_kept = true;
    if (is_virtual()) {
        int problem = wait_for_condition(condition, mutex, moment_of(at), &is_kept);
        if (is_kept) return problem;
    }
    REAL(pthread_cond_timedwait);
    return real(condition, mutex, at);
}

int pthread_cond_clockwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, clockid_t clock,
                           const struct timespec *restrict at) {
    bool is_kept = true;
    if (is_virtual()) {
        int problem = wait_for_condition(condition, mutex, moment_of(at), &is_kept);
        if (is_kept) return problem;
    }
    REAL(pthread_cond_clockwait);
    return real(condition, mutex, clock, at);
}

/* Words of memory */

/* Wait until a word of memory is another one or somebody wakes us; an error number, ETIMEDOUT among them. */
static int wait_for_word(void *word, uint32_t value, int operation, int64_t deadline, bool *is_kept) {
    int private = operation & FUTEX_PRIVATE_FLAG;
    if (virtual_now() >= deadline) return ETIMEDOUT;
    struct kept_wait wait = {.deadline = deadline, .word = word, .operation = FUTEX_WAKE | private};
    *is_kept = begin_wait(&wait);
    if (!*is_kept) return 0;
    long result;
    pthread_cleanup_push(finish_wait, &wait);
    result = futex(word, FUTEX_WAIT | private, value);
    if (result < 0) result = -errno;
    pthread_cleanup_pop(1);
    return atomic_load(&wait.is_over) ? ETIMEDOUT : (int)-result;
}

/* What programs and libraries do without the C library's functions, among them those in Rust. */
long syscall(long number, ...) {
    va_list list;
    long a[6];
    va_start(list, number);
    for (int each = 0; each < 6; each++) a[each] = va_arg(list, long);
    va_end(list);
    int command = (int)a[1] & FUTEX_CMD_MASK;
    const struct timespec *timeout = (const struct timespec *)a[3];
    bool waits_for_word = number == SYS_futex && (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) && timeout;
    if (waits_for_word && is_virtual()) {
        int64_t deadline = command == FUTEX_WAIT ? moment_after(as_ns(timeout)) : moment_of(timeout);
        bool is_kept = true;
        int problem = wait_for_word((void *)a[0], (uint32_t)a[2], (int)a[1], deadline, &is_kept);
        if (is_kept) {
            errno = problem;
            return problem ? -1 : 0;
        }
    }
    if (number == SYS_clock_gettime) return clock_gettime((clockid_t)a[0], (struct timespec *)a[1]);
    return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Semaphores. glibc's is a count in the low half of a word of 64 bits and the number of those who wait in the high one;
 * whoever posts to it wakes one of them (nptl/sem_waitcommon.c, since 2.21). */

#if defined(__GLIBC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && UINTPTR_MAX > UINT32_MAX
static int wait_for_semaphore(sem_t *semaphore, int64_t deadline, bool *is_kept) {
    const uint64_t one_waits = UINT64_C(1) << 32;
    _Atomic uint64_t *data = (_Atomic uint64_t *)semaphore;
    /* The word behind says whether it is shared between processes. */
    int shared = ((int *)semaphore)[2] ? 0 : FUTEX_PRIVATE_FLAG;
    atomic_fetch_add(data, one_waits);
    for (;;) {
        uint64_t seen = atomic_load(data);
        while ((uint32_t)seen) {
            if (atomic_compare_exchange_weak(data, &seen, seen - one_waits - 1)) return 0;
        }
        int problem = wait_for_word(data, 0, shared, deadline, is_kept);
        if (!*is_kept || problem == ETIMEDOUT || problem == EINTR) {
            atomic_fetch_sub(data, one_waits);
            return *is_kept ? problem : 0;
        }
    }
}
#else
static int wait_for_semaphore(sem_t *semaphore, int64_t deadline, bool *is_kept) {
    *is_kept = false;
    lacking(LACK_SLOTS);
    return 0;
}
#endif

static bool semaphore_until(sem_t *semaphore, const struct timespec *at, int *result) {
    bool is_kept = true;
    int problem = sem_trywait(semaphore) == 0 ? 0 : wait_for_semaphore(semaphore, moment_of(at), &is_kept);
    if (problem) errno = problem;
    *result = problem ? -1 : 0;
    return is_kept;
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict at) {
    int result;
    if (is_virtual() && semaphore_until(semaphore, at, &result)) return result;
    REAL(sem_timedwait);
    return real(semaphore, at);
}

int sem_clockwait(sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict at) {
    int result;
    if (is_virtual() && semaphore_until(semaphore, at, &result)) return result;
    REAL(sem_clockwait);
    return real(semaphore, clock, at);
}

/* Mutexes: the keeper cannot wake anybody who waits for one. So he waits for a few milliseconds of real time, again and
 * again, and looks at the clock in between; that he is overdue meanwhile, his slot tells. */

static int lock_until(pthread_mutex_t *mutex, int64_t deadline) {
    static __typeof__(pthread_mutex_timedlock) *real_lock;
    static __typeof__(clock_gettime) *real_clock;
    if (!real_lock) real_lock = (__typeof__(pthread_mutex_timedlock) *)dlsym(RTLD_NEXT, "pthread_mutex_timedlock");
    if (!real_clock) real_clock = (__typeof__(clock_gettime) *)dlsym(RTLD_NEXT, "clock_gettime");
    const int64_t glance = 2000000;
    int problem = pthread_mutex_trylock(mutex);
    if (problem != EBUSY) return problem;
    struct alarm_clock clock;
    bool is_set = set_alarm(&clock, deadline);
    do {
        struct timespec at;
        real_clock(CLOCK_REALTIME, &at);
        at = as_timespec(as_ns(&at) + glance);
        problem = real_lock(mutex, &at);
    } while (problem == ETIMEDOUT && virtual_now() < deadline);
    if (is_set) end_alarm(&clock);
    return problem;
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict at) {
    if (is_virtual()) return lock_until(mutex, moment_of(at));
    REAL(pthread_mutex_timedlock);
    return real(mutex, at);
}

int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t clock, const struct timespec *restrict at) {
    if (is_virtual()) return lock_until(mutex, moment_of(at));
    REAL(pthread_mutex_clocklock);
    return real(mutex, clock, at);
}
