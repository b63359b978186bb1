/* The run's clock for programs that are not written in Go: declarations that the files of this folder share.
 *
 * The files are one library, which the dynamic linker loads before the C library (LD_PRELOAD). It reads the time from
 * a page that the coordinator writes (batkube/timing/pages/session_page.py). It replaces each wait that has a timeout
 * by one without, which a wake-up ends: a datagram that the coordinator sends when the clock reaches the deadline.
 * The library does not report idleness; the coordinator determines it from the kernel. Without BATKUBE_CLOCK in the
 * environment, all functions behave as usual. */

#ifndef BATKUBE_CLOCK_H
#define BATKUBE_CLOCK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define NEVER INT64_MAX
#define SECOND INT64_C(1000000000)

/* A wait with a deadline, in the table of the page. */
struct wait_slot {
    _Atomic uint64_t thread;   /* process in the low half, thread in the high one; 0: free */
    _Atomic int64_t deadline;  /* Unix time of the wake-up in ns; NEVER: no wake-up */
};

enum { TABLE_OFFSET = 4096, SLOTS = 3584 };  /* batkube.clock uses the slots after these */

/* The page. Also defined in timing/pages/clock_page.py, timing/pages/session_page.py and clock/program_clock.py;
 * docs/reference/schedulers.md describes it. Up to `pid` it has the layout of Go programs. */
struct clock_page {
    uint64_t magic;                /* 0 */
    _Atomic int64_t now;           /* 1: Unix time in ns */
    uint64_t _coordinator[2];
    _Atomic uint64_t flags;        /* 4: DETERMINISTIC */
    uint64_t seed;                 /* 5 */
    uint64_t _unused[5];
    _Atomic uint64_t wrote;        /* 11: writes, connects and closes started on connections to the run */
    uint64_t _go[3];
    _Atomic uint64_t connects;     /* 15: connections to the run started */
    _Atomic int64_t sent, got;     /* 16, 17: bytes written to and read from the run */
    uint64_t _live;
    _Atomic uint64_t pid;          /* 19: the first process that mapped the page */
    int64_t epoch;                 /* 20: the Unix time at which monotonic clocks show 0 */
    _Atomic uint64_t slots;        /* 21: number of slots of the table that have been used so far */
    _Atomic uint64_t unsupported;  /* 22: features used that keep real time: a set of `feature` */
    _Atomic uint64_t elsewhere;    /* 23: connections to other peers started */
    uint64_t port;                 /* 24: of the run's API server */
    uint64_t proxy_port;           /* 25: of kubectl's proxy; connections are redirected to `port` */
    _Atomic uint64_t processes;    /* 26: number of processes that have drawn random numbers */
    uint64_t token;                /* 27: part of the names of wake-up sockets */
    uint64_t _module_slots, _foreign;
    _Atomic uint64_t arriving;     /* 30: the announced piece, see arrivals.c */
    _Atomic uint64_t opened;       /* 31: number of connections to the run's server established */
    uint64_t _table[8160];
    _Atomic uint16_t ports[1 << 14]; /* from byte 65536: the local ports of the latest of these, by number */
};

enum { MAGIC = 0x344b4256, DETERMINISTIC = 1 };

/* Features that keep real time; timing/pages/session_page.py has a description of each. */
enum feature {
    FEATURE_ITIMER = 1,          /* alarm, setitimer */
    FEATURE_TIMERFD = 2,         /* timerfd_settime, timer_settime */
    FEATURE_SOCKET = 4,          /* SO_RCVTIMEO, SO_SNDTIMEO */
    FEATURE_MORE_WAITS = 8,      /* more simultaneous waits than slots */
};

/* The library is preloaded, so an exported name would replace the same name in the program's own libraries. */
#pragma GCC visibility push(hidden)

/* NULL on real time. */
extern struct clock_page *page;

void clock_init(void);
void record_unsupported(enum feature feature);

/* Constructors of other libraries may read the time before the constructor of this one has run. */
static inline bool is_virtual(void) {
    clock_init();
    return page != NULL;
}

static inline int64_t virtual_now(void) { return atomic_load(&page->now); }

static inline int64_t as_ns(const struct timespec *span) { return span->tv_sec * SECOND + span->tv_nsec; }

static inline struct timespec as_timespec(int64_t ns) {
    return (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
}

/* Return the Unix time after a duration; NEVER on overflow. */
int64_t deadline_after(int64_t ns);
/* Return the Unix time of an instant on any clock. Monotonic clocks have far smaller values, by which they are told
 * apart. */
int64_t deadline_at(const struct timespec *at);

/* Allocate a slot of the table for a thread; NULL if all are in use. */
struct wait_slot *allocate_slot(pid_t tid, unsigned *number);
void release_slot(struct wait_slot *slot);
/* Open the socket to which the coordinator sends the wake-ups of a slot; -1 on failure. */
int open_wake_socket(unsigned number);
void drain_wake_socket(int wake_socket);
/* How long to wait for a wake-up before checking whether the coordinator still runs. */
enum { LIVENESS_CHECK_MS = 10000 };
/* Exit if the coordinator has ended: without it the clock would never advance. */
void exit_without_coordinator(void);

/* The slot and the wake-up socket of the calling thread. */
struct timed_wait {
    struct wait_slot *slot;
    int wake_socket;
};
/* Set the deadline of the calling thread's wait; false if there is no slot, and the wait must use real time. */
bool begin_timed_wait(struct timed_wait *timed, int64_t deadline);
void end_timed_wait(struct timed_wait *timed);

/* Register a connection to the run's server, and remove it. */
void register_connection(int file);
void unregister_connection(int file);
/* Wait in real time until the announced piece has arrived. */
void await_arrival(void);

#pragma GCC visibility pop

/* The C library's own version of a function. */
#define REAL(function)                                                            \
    static __typeof__(function) *real;                                            \
    if (!real) real = (__typeof__(function) *)dlsym(RTLD_NEXT, #function)

#endif
