/* The page, its table of waits, and their wake-up sockets. */

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
static pthread_key_t thread_key;

/* The slot and the wake-up socket of a thread, from its first wait with a timeout. */
static __thread struct wait_slot *own_slot;
static __thread int own_wake_socket = -1;

static pid_t coordinator;

static void fail(const char *problem) {
    static const char prefix[] = "batkube: ";
    if (write(2, prefix, sizeof prefix - 1) < 0 || write(2, problem, strlen(problem)) < 0 || write(2, "\n", 1) < 0) {
        /* stderr is closed; the exit code remains */
    }
    _exit(2);
}

static void register_process(void) {
    uint64_t none = 0;
    atomic_compare_exchange_strong(&page->pid, &none, (uint64_t)getpid());
    /* A slot lets the coordinator find the process even after its parent has ended. */
    unsigned number;
    own_slot = allocate_slot((pid_t)syscall(SYS_gettid), &number);
}

/* After a fork, the child has a copy of the slot and the wake-up socket of the thread that forked. */
static void register_child(void) {
    if (own_wake_socket >= 0) close(own_wake_socket);
    own_wake_socket = -1;
    own_slot = NULL;
    register_process();
}

static void release_thread_slot(void *unused) {
    (void)unused;
    if (own_wake_socket >= 0) close(own_wake_socket);
    if (own_slot) release_slot(own_slot);
    own_wake_socket = -1;
    own_slot = NULL;
}

static void map_page(void) {
    const char *path = getenv("BATKUBE_CLOCK");
    if (!path) return;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) fail("the page named by BATKUBE_CLOCK cannot be opened");
    void *mapped = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) fail("the page named by BATKUBE_CLOCK cannot be mapped");
    if (((struct clock_page *)mapped)->magic != MAGIC) {
        fail("the file named by BATKUBE_CLOCK is not a page of this version of Batkube");
    }
    sscanf(path, "/proc/%d/", &coordinator);
    table = (struct wait_slot *)((char *)mapped + TABLE_OFFSET);
    pthread_key_create(&thread_key, release_thread_slot);
    pthread_atfork(NULL, NULL, register_child);
    page = mapped;
    register_process();
}

/* Functions that map_page calls call this again, which then does nothing. */
__attribute__((constructor)) void clock_init(void) {
    static atomic_bool is_done;
    if (!atomic_load(&is_done) && !atomic_exchange(&is_done, true)) map_page();
}

void record_unsupported(enum feature feature) {
    if (is_virtual()) atomic_fetch_or(&page->unsupported, (uint64_t)feature);
}

int64_t deadline_after(int64_t ns) {
    int64_t now = virtual_now();
    if (ns <= 0) return now;
    return ns > NEVER - now ? NEVER : now + ns;
}

int64_t deadline_at(const struct timespec *at) {
    if (at->tv_sec >= NEVER / SECOND) return NEVER;
    int64_t ns = as_ns(at);
    if (ns >= page->epoch) return ns;
    return ns > NEVER - page->epoch ? NEVER : ns + page->epoch;
}

struct wait_slot *allocate_slot(pid_t tid, unsigned *number) {
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
    record_unsupported(FEATURE_MORE_WAITS);
    return NULL;
}

void release_slot(struct wait_slot *slot) {
    atomic_store(&slot->deadline, NEVER);
    atomic_store(&slot->thread, 0);
}

int open_wake_socket(unsigned number) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "batkube-%llx-%u",
                          (unsigned long long)page->token, number);
    int low = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (low < 0) return -1;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (bind(low, (struct sockaddr *)&address, size) != 0) {
        close(low);
        return -1;
    }
    /* A high number, because some programs rely on getting the lowest free one. */
    int high = fcntl(low, F_DUPFD_CLOEXEC, 200);
    if (high < 0) return low;
    close(low);
    return high;
}

void drain_wake_socket(int wake_socket) {
    char datagram[8];
    while (recv(wake_socket, datagram, sizeof datagram, MSG_DONTWAIT) >= 0) continue;
}

void exit_without_coordinator(void) {
    if (coordinator && kill(coordinator, 0) != 0 && errno == ESRCH) _exit(1);
}

bool begin_timed_wait(struct timed_wait *timed, int64_t deadline) {
    /* The program may have closed all files that it did not open. */
    if (own_wake_socket >= 0 && fcntl(own_wake_socket, F_GETFD) < 0) own_wake_socket = -1;
    if (own_slot && own_wake_socket < 0) {
        own_wake_socket = open_wake_socket((unsigned)(own_slot - table));
    }
    if (!own_slot) {
        unsigned number;
        own_slot = allocate_slot((pid_t)syscall(SYS_gettid), &number);
        if (own_slot) own_wake_socket = open_wake_socket(number);
        pthread_setspecific(thread_key, own_slot);
    }
    if (!own_slot || own_wake_socket < 0) {
        record_unsupported(FEATURE_MORE_WAITS);
        return false;
    }
    *timed = (struct timed_wait){.slot = own_slot, .wake_socket = own_wake_socket};
    atomic_store(&own_slot->deadline, deadline);
    return true;
}

void end_timed_wait(struct timed_wait *timed) { atomic_store(&timed->slot->deadline, NEVER); }
