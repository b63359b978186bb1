/* The page, the table of waits in it, and their bells. */

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

struct clock_page *page;

static struct wait_slot *table;
static pthread_key_t ending;

/* What a thread has, once it has waited with a timeout. */
static __thread struct wait_slot *own_slot;
static __thread int own_bell = -1;

static pid_t coordinator;

static void refuse(const char *problem) {
    static const char prefix[] = "batkube: ";
    if (write(2, prefix, sizeof prefix - 1) < 0 || write(2, problem, strlen(problem)) < 0 || write(2, "\n", 1) < 0) {
        /* nobody reads it */
    }
    _exit(2);
}

static void enter(void) {
    uint64_t none = 0;
    atomic_compare_exchange_strong(&page->pid, &none, (uint64_t)getpid());
    /* So that the coordinator finds a process whose parent has ended. */
    unsigned number;
    own_slot = take_slot((pid_t)syscall(SYS_gettid), &number);
}

/* A child has the memory of its parent, with the slot and the bell of the thread that made it. */
static void enter_child(void) {
    if (own_bell >= 0) close(own_bell);
    own_bell = -1;
    own_slot = NULL;
    enter();
}

static void leave(void *unused) {
    (void)unused;
    if (own_bell >= 0) close(own_bell);
    if (own_slot) leave_slot(own_slot);
    own_bell = -1;
    own_slot = NULL;
}

static void begin(void) {
    const char *path = getenv("BATKUBE_CLOCK");
    if (!path) return;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) refuse("the page named by BATKUBE_CLOCK cannot be opened");
    void *mapped = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) refuse("the page named by BATKUBE_CLOCK cannot be mapped");
    if (((struct clock_page *)mapped)->magic != MAGIC) {
        refuse("the file named by BATKUBE_CLOCK is not a page of this version of Batkube");
    }
    sscanf(path, "/proc/%d/", &coordinator);
    table = (struct wait_slot *)((char *)mapped + TABLE_OFFSET);
    pthread_key_create(&ending, leave);
    pthread_atfork(NULL, NULL, enter_child);
    page = mapped;
    enter();
}

/* What `begin` calls comes by here again, and finds that it has begun. */
__attribute__((constructor)) void clock_begin(void) {
    static atomic_bool has_begun;
    if (!atomic_load(&has_begun) && !atomic_exchange(&has_begun, true)) begin();
}

void lacking(enum lack what) {
    if (is_virtual()) atomic_fetch_or(&page->lacks, (uint64_t)what);
}

int64_t moment_after(int64_t ns) {
    int64_t now = virtual_now();
    if (ns <= 0) return now;
    return ns > NEVER - now ? NEVER : now + ns;
}

int64_t moment_of(const struct timespec *at) {
    if (at->tv_sec >= NEVER / SECOND) return NEVER;
    int64_t ns = as_ns(at);
    if (ns >= page->epoch) return ns;
    return ns > NEVER - page->epoch ? NEVER : ns + page->epoch;
}

struct wait_slot *take_slot(pid_t tid, unsigned *number) {
    uint64_t thread = (uint64_t)(uint32_t)getpid() | (uint64_t)(uint32_t)tid << 32;
    for (unsigned each = 0; each < SLOTS; each++) {
        uint64_t none = 0;
        if (atomic_load(&table[each].thread) == 0) {
            atomic_store(&table[each].deadline, NEVER);
            if (atomic_compare_exchange_strong(&table[each].thread, &none, thread)) {
                uint64_t high = atomic_load(&page->slots);
                while (high < each + 1 && !atomic_compare_exchange_weak(&page->slots, &high, each + 1)) continue;
                *number = each;
                return &table[each];
            }
        }
    }
    lacking(LACK_SLOTS);
    return NULL;
}

void leave_slot(struct wait_slot *slot) {
    atomic_store(&slot->deadline, NEVER);
    atomic_store(&slot->thread, 0);
}

int open_bell(unsigned number) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "batkube-%llx-%u",
                          (unsigned long long)page->token, number);
    int bell = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bell < 0) return -1;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (bind(bell, (struct sockaddr *)&address, size) != 0) {
        close(bell);
        return -1;
    }
    /* Out of the way of programs that count on getting the lowest number. */
    int high = fcntl(bell, F_DUPFD_CLOEXEC, 200);
    if (high < 0) return bell;
    close(bell);
    return high;
}

void empty_bell(int bell) {
    char ring[8];
    while (recv(bell, ring, sizeof ring, MSG_DONTWAIT) >= 0) continue;
}

void end_if_abandoned(void) {
    if (coordinator && kill(coordinator, 0) != 0 && errno == ESRCH) _exit(1);
}

bool set_alarm(struct alarm_clock *clock, int64_t deadline) {
    /* A program may have closed all that it does not know. */
    if (own_bell >= 0 && fcntl(own_bell, F_GETFD) < 0) own_bell = -1;
    if (own_slot && own_bell < 0) {
        own_bell = open_bell((unsigned)(own_slot - table));
    }
    if (!own_slot) {
        unsigned number;
        own_slot = take_slot((pid_t)syscall(SYS_gettid), &number);
        if (own_slot) own_bell = open_bell(number);
        pthread_setspecific(ending, own_slot);
    }
    if (!own_slot || own_bell < 0) {
        lacking(LACK_SLOTS);
        return false;
    }
    *clock = (struct alarm_clock){.slot = own_slot, .bell = own_bell};
    atomic_store(&own_slot->deadline, deadline);
    return true;
}

void end_alarm(struct alarm_clock *clock) { atomic_store(&clock->slot->deadline, NEVER); }
