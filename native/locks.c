/* Waiting for other threads with a timeout: conditions, semaphores, mutexes, futexes.
 *
 * These waits cannot include a socket. A process that uses them therefore gets a helper thread, which waits on a socket
 * and wakes the threads that are due. The clock advances only when all threads are asleep, so a thread that is due has
 * already begun its wait, and no wake-up is lost. */

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

/* A wait for a condition, or else for a word of memory, which the helper ends at its deadline. */
struct lock_wait {
    int64_t deadline;
    pthread_cond_t *condition;
    void *word;
    int operation;          /* FUTEX_WAKE, within the process or across processes */
    _Atomic bool is_over;   /* whether the deadline has passed */
    struct lock_wait *next;
};

static pthread_mutex_t helper_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct lock_wait *waits;
static struct wait_slot *helper_slot;
static int helper_socket = -1;
static pid_t helper_process;

/* Publish the next deadline as that of the helper; called with helper_mutex locked. */
static void publish_next_deadline(void) {
    int64_t next = NEVER;
    for (struct lock_wait *each = waits; each; each = each->next) {
        if (!atomic_load(&each->is_over) && each->deadline < next) next = each->deadline;
    }
    atomic_store(&helper_slot->deadline, next);
}

static void end_wait(struct lock_wait *wait) {
    atomic_store(&wait->is_over, true);
    if (wait->condition) {
        pthread_cond_broadcast(wait->condition);
    } else {
        futex(wait->word, wait->operation, INT_MAX);
    }
}

static void *run_helper(void *unused) {
    static __typeof__(poll) *real_poll;
    real_poll = (__typeof__(poll) *)dlsym(RTLD_NEXT, "poll");
    for (;;) {
        struct pollfd wake_up = {.fd = helper_socket, .events = POLLIN};
        if (real_poll(&wake_up, 1, LIVENESS_CHECK_MS) == 0) exit_without_coordinator();
        drain_wake_socket(helper_socket);
        pthread_mutex_lock(&helper_mutex);
        for (struct lock_wait *each = waits; each; each = each->next) {
            if (!atomic_load(&each->is_over) && each->deadline <= virtual_now()) end_wait(each);
        }
        publish_next_deadline();
        pthread_mutex_unlock(&helper_mutex);
    }
    return unused;
}

/* Start the helper, if it does not run yet; called with helper_mutex locked. */
static bool start_helper(void) {
    if (helper_process == getpid()) return helper_slot != NULL;
    helper_process = getpid();
    waits = NULL;  /* after a fork, these belong to threads of the parent */
    unsigned number;
    helper_slot = allocate_slot((pid_t)real_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0), &number);
    if (!helper_slot) return false;
    if (helper_socket >= 0) close(helper_socket);
    helper_socket = open_wake_socket(number);
    /* Only the program's own threads handle signals. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    bool is_running = helper_socket >= 0 && pthread_create(&thread, NULL, run_helper, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!is_running) {
        release_slot(helper_slot);
        helper_slot = NULL;
        record_unsupported(FEATURE_MORE_WAITS);
        return false;
    }
    pthread_detach(thread);
    return true;
}

/* Register a wait; false if it must use real time. */
static bool begin_wait(struct lock_wait *wait) {
    pthread_mutex_lock(&helper_mutex);
    bool is_registered = start_helper();
    if (is_registered) {
        wait->next = waits;
        waits = wait;
        publish_next_deadline();
    }
    pthread_mutex_unlock(&helper_mutex);
    return is_registered;
}

static void finish_wait(void *ended) {
    struct lock_wait *wait = ended;
    pthread_mutex_lock(&helper_mutex);
    for (struct lock_wait **each = &waits; *each; each = &(*each)->next) {
        if (*each == wait) {
            *each = wait->next;
            break;
        }
    }
    publish_next_deadline();
    pthread_mutex_unlock(&helper_mutex);
}

/* Conditions */

static int wait_for_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline,
                              bool *is_registered) {
    if (virtual_now() >= deadline) return ETIMEDOUT;
    struct lock_wait wait = {.deadline = deadline, .condition = condition};
    *is_registered = begin_wait(&wait);
    if (!*is_registered) return 0;
    int problem;
    pthread_cleanup_push(finish_wait, &wait);
    problem = pthread_cond_wait(condition, mutex);
    pthread_cleanup_pop(1);
    return problem ? problem : atomic_load(&wait.is_over) ? ETIMEDOUT : 0;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict at) {
    bool is_registered = true;
    if (is_virtual()) {
        int problem = wait_for_condition(condition, mutex, deadline_at(at), &is_registered);
        if (is_registered) return problem;
    }
    REAL(pthread_cond_timedwait);
    return real(condition, mutex, at);
}

int pthread_cond_clockwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, clockid_t clock,
                           const struct timespec *restrict at) {
    bool is_registered = true;
    if (is_virtual()) {
        int problem = wait_for_condition(condition, mutex, deadline_at(at), &is_registered);
        if (is_registered) return problem;
    }
    REAL(pthread_cond_clockwait);
    return real(condition, mutex, clock, at);
}

/* Words of memory */

/* Wait until a word of memory changes or another thread wakes us; return 0 or an error number, such as ETIMEDOUT. */
static int wait_for_word(void *word, uint32_t value, int operation, int64_t deadline, bool *is_registered) {
    int private = operation & FUTEX_PRIVATE_FLAG;
    if (virtual_now() >= deadline) return ETIMEDOUT;
    struct lock_wait wait = {.deadline = deadline, .word = word, .operation = FUTEX_WAKE | private};
    *is_registered = begin_wait(&wait);
    if (!*is_registered) return 0;
    long result;
    pthread_cleanup_push(finish_wait, &wait);
    result = futex(word, FUTEX_WAIT | private, value);
    if (result < 0) result = -errno;
    pthread_cleanup_pop(1);
    return atomic_load(&wait.is_over) ? ETIMEDOUT : (int)-result;
}

/* Direct system calls: some programs and libraries, for example in Rust, do not use the C library's functions. */
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
        int64_t deadline = command == FUTEX_WAIT ? deadline_after(as_ns(timeout)) : deadline_at(timeout);
        bool is_registered = true;
        int problem = wait_for_word((void *)a[0], (uint32_t)a[2], (int)a[1], deadline, &is_registered);
        if (is_registered) {
            errno = problem;
            return problem ? -1 : 0;
        }
    }
    if (number == SYS_clock_gettime) return clock_gettime((clockid_t)a[0], (struct timespec *)a[1]);
    return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Semaphores. In glibc a semaphore is a 64-bit word: its value in the low half, the number of waiting threads in the
 * high one. A post wakes one of them (nptl/sem_waitcommon.c, since 2.21). */

#if defined(__GLIBC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && UINTPTR_MAX > UINT32_MAX
static int wait_for_semaphore(sem_t *semaphore, int64_t deadline, bool *is_registered) {
    const uint64_t one_waits = UINT64_C(1) << 32;
    _Atomic uint64_t *data = (_Atomic uint64_t *)semaphore;
    /* The next word is not 0 if it is shared between processes. */
    int shared = ((int *)semaphore)[2] ? 0 : FUTEX_PRIVATE_FLAG;
    atomic_fetch_add(data, one_waits);
    for (;;) {
        uint64_t seen = atomic_load(data);
        while ((uint32_t)seen) {
            if (atomic_compare_exchange_weak(data, &seen, seen - one_waits - 1)) return 0;
        }
        int problem = wait_for_word(data, 0, shared, deadline, is_registered);
        if (!*is_registered || problem == ETIMEDOUT || problem == EINTR) {
            atomic_fetch_sub(data, one_waits);
            return *is_registered ? problem : 0;
        }
    }
}
#else
static int wait_for_semaphore(sem_t *semaphore, int64_t deadline, bool *is_registered) {
    *is_registered = false;
    record_unsupported(FEATURE_MORE_WAITS);
    return 0;
}
#endif

static bool semaphore_until(sem_t *semaphore, const struct timespec *at, int *result) {
    bool is_registered = true;
    int problem = sem_trywait(semaphore) == 0 ? 0 : wait_for_semaphore(semaphore, deadline_at(at), &is_registered);
    if (problem) errno = problem;
    *result = problem ? -1 : 0;
    return is_registered;
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

/* Mutexes. The helper cannot wake a thread that waits for a mutex. Such a thread therefore waits for a few milliseconds
 * of real time, repeatedly, and checks the clock in between. Its slot shows that the wait is overdue. */

static int lock_until(pthread_mutex_t *mutex, int64_t deadline) {
    static __typeof__(pthread_mutex_timedlock) *real_lock;
    static __typeof__(clock_gettime) *real_clock;
    if (!real_lock) real_lock = (__typeof__(pthread_mutex_timedlock) *)dlsym(RTLD_NEXT, "pthread_mutex_timedlock");
    if (!real_clock) real_clock = (__typeof__(clock_gettime) *)dlsym(RTLD_NEXT, "clock_gettime");
    const int64_t pause = 2000000;
    int problem = pthread_mutex_trylock(mutex);
    if (problem != EBUSY) return problem;
    struct timed_wait timed;
    bool is_set = begin_timed_wait(&timed, deadline);
    do {
        struct timespec at;
        real_clock(CLOCK_REALTIME, &at);
        at = as_timespec(as_ns(&at) + pause);
        problem = real_lock(mutex, &at);
    } while (problem == ETIMEDOUT && virtual_now() < deadline);
    if (is_set) end_timed_wait(&timed);
    return problem;
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict at) {
    if (is_virtual()) return lock_until(mutex, deadline_at(at));
    REAL(pthread_mutex_timedlock);
    return real(mutex, at);
}

int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t clock, const struct timespec *restrict at) {
    if (is_virtual()) return lock_until(mutex, deadline_at(at));
    REAL(pthread_mutex_clocklock);
    return real(mutex, clock, at);
}
