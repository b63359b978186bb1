/* Reading whole pieces from the run's server.
 *
 * The kernel may deliver a piece in several segments, and a program with a free core would handle the first segment
 * alone. The server therefore announces each piece on the page before it sends it, and calls that wait for a connection
 * or read from it do not return until the announced piece has arrived. */

#include "clock.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* TCP_CLOSE; in higher states the peer has closed the stream, or the socket is closing. */
enum { ENDED = 7 };
enum { PORT_SHIFT = 48 };
static const uint64_t TOTAL_MASK = (UINT64_C(1) << 40) - 1;

/* For each connection of this process to the run's server: its file, plus one, by local port, and its port by file. */
enum { MOST = 65536 };
static _Atomic int files[MOST];
static _Atomic uint16_t ports[MOST];

void register_connection(int file) {
    struct sockaddr_in local = {0};
    socklen_t length = sizeof local;
    int problem = errno;
    if (getsockname(file, (struct sockaddr *)&local, &length) == 0 && local.sin_family == AF_INET) {
        uint16_t port = ntohs(local.sin_port);
        uint64_t number = atomic_fetch_add(&page->opened, 1);
        atomic_store(&page->ports[number % (sizeof page->ports / sizeof *page->ports)], port);
        if (file < MOST) {
            atomic_store(&files[port], file + 1);
            atomic_store(&ports[file], port);
        }
    }
    errno = problem;
}

void unregister_connection(int file) {
    if (file < 0 || file >= MOST) return;
    uint16_t port = atomic_exchange(&ports[file], 0);
    if (port) atomic_store(&files[port], 0);
}

static bool has_arrived(uint64_t announced) {
    int file = atomic_load(&files[announced >> PORT_SHIFT]) - 1;
    struct tcp_info info;
    socklen_t size = sizeof info;
    if (file < 0 || getsockopt(file, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return true; /* it was closed */
    return info.tcpi_state >= ENDED || info.tcpi_bytes_received >= (announced & TOTAL_MASK);
}

void await_arrival(void) {
    static _Atomic uint64_t whole;
    int problem = errno;
    uint64_t announced = atomic_load(&page->arriving);
    if (announced == atomic_load(&whole)) return;
    while (!has_arrived(announced)) {
        syscall(SYS_sched_yield); /* a sleeping thread would count as idle (timing/pages/thread_states.py) */
        announced = atomic_load(&page->arriving); /* the server withdraws a piece that it cannot send */
    }
    atomic_store(&whole, announced);
    errno = problem;
}
