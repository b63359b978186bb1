/* The run's clock for programs that are not written in Go: what the files of this folder share.
 *
 * Together they are one library, which the dynamic linker puts before the C library (LD_PRELOAD). It answers every
 * question about time from a page that the coordinator keeps (batkube/timing/pages/session_page.py), and turns each wait that
 * has a timeout into one that has none and is ended by a bell: a datagram that the coordinator sends when the clock
 * has reached the moment at which the wait would be over. Whether the program is idle it does not say. The kernel knows
 * that better, and the coordinator asks it. A program that was not started by Batkube notices nothing of all this. */

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

/* One wait that the clock may end. */
struct wait_slot {
    _Atomic uint64_t thread;   /* process in the low half, thread in the high one; 0: free */
    _Atomic int64_t deadline;  /* Unix time in ns at which the bell has to ring; NEVER: it is not waited for */
};

enum { TABLE_OFFSET = 4096, SLOTS = 3584 };  /* those beyond are for batkube.clock */

/* The page; its other readers are timing/pages/clock_page.py, timing/pages/session_page.py and clock.py, and docs/reference/schedulers.md
 * describes it. Up to `pid` it is laid out as for Go programs. */
struct clock_page {
    uint64_t magic;                /* 0 */
    _Atomic int64_t now;           /* 1: Unix time in ns */
    uint64_t _coordinator[2];
    _Atomic uint64_t flags;        /* 4: DETERMINISTIC */
    uint64_t seed;                 /* 5 */
    uint64_t _unused[5];
    _Atomic uint64_t wrote;        /* 11: writes, connects and closes begun on connections to the run */
    uint64_t _go[3];
    _Atomic uint64_t connects;     /* 15: connections to the run begun */
    _Atomic int64_t sent, got;     /* 16, 17: bytes written to and read from them */
    uint64_t _live;
    _Atomic uint64_t pid;          /* 19: the first process that took the page */
    int64_t epoch;                 /* 20: the Unix time at which monotonic clocks show 0 */
    _Atomic uint64_t slots;        /* 21: how many of the table's slots have ever been in use */
    _Atomic uint64_t lacks;        /* 22: what was used that knows real time only, see `lack` */
    _Atomic uint64_t elsewhere;    /* 23: connections begun to others than the run */
    uint64_t port;                 /* 24: of the run's API */
    uint64_t proxy_port;           /* 25: what the program takes for kubectl's proxy; leads to `port` */
    _Atomic uint64_t processes;    /* 26: how many processes have taken the page */
    uint64_t token;                /* 27: part of the bells' names */
    uint64_t _module_slots, _foreign;
    _Atomic uint64_t arriving;     /* 30: the piece that the server sends, see arrivals.c */
    _Atomic uint64_t opened;       /* 31: connections to the run's server made */
    uint64_t _table[8160];
    _Atomic uint16_t ports[1 << 14]; /* byte 65536 on: the local ports of the latest of them, each at its number */
};

enum { MAGIC = 0x344b4256, DETERMINISTIC = 1 };

/* What the page's `lacks` tells; timing/pages/session_page.py has a sentence for each. */
enum lack {
    LACK_ITIMER = 1,   /* alarm, setitimer */
    LACK_TIMERFD = 2,  /* timerfd_settime, timer_settime */
    LACK_SOCKET = 4,   /* SO_RCVTIMEO, SO_SNDTIMEO */
    LACK_SLOTS = 8,    /* more waits at once than the table has room for */
};

/* NULL in a program that lives on real time. */
extern struct clock_page *page;

void clock_begin(void);
void lacking(enum lack what);

/* The library's constructor may run after those of others, which may ask for the time already. */
static inline bool is_virtual(void) {
    clock_begin();
    return page != NULL;
}

static inline int64_t virtual_now(void) { return atomic_load(&page->now); }

static inline int64_t as_ns(const struct timespec *span) { return span->tv_sec * SECOND + span->tv_nsec; }

static inline struct timespec as_timespec(int64_t ns) {
    return (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
}

/* Return the moment that is so far off, or NEVER. */
int64_t moment_after(int64_t ns);
/* Return the Unix time of a moment on whichever clock: monotonic ones show far smaller numbers. */
int64_t moment_of(const struct timespec *at);

/* Take a slot of the table for a thread; NULL if there is none left. */
struct wait_slot *take_slot(pid_t tid, unsigned *number);
void leave_slot(struct wait_slot *slot);
/* Open the bell of a slot: a socket that the coordinator can send to. -1 if that is impossible. */
int open_bell(unsigned number);
void empty_bell(int bell);
/* How long to wait for a bell before looking whether anybody is left to ring it. */
enum { GLANCE_MS = 10000 };
/* End, if the coordinator has: on a clock that nobody moves we would wait for ever. */
void end_if_abandoned(void);

/* The calling thread's own slot and bell, for a wait until `deadline`. */
struct alarm_clock {
    struct wait_slot *slot;
    int bell;
};
/* Return whether the wait may begin; if not, for want of slots, it has to take real time. */
bool set_alarm(struct alarm_clock *clock, int64_t deadline);
void end_alarm(struct alarm_clock *clock);

/* Register a connection to the run's server, and its end. */
void connection_began(int file);
void connection_ended(int file);
/* Wait, in real time, until the piece that the server has announced has arrived. */
void await_arrival(void);

/* The C library's own version of a function. */
#define REAL(function)                                                            \
    static __typeof__(function) *real;                                            \
    if (!real) real = (__typeof__(function) *)dlsym(RTLD_NEXT, #function)

#endif
