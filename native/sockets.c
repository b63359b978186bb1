/* Connections to the run. Their bytes are counted, so that the coordinator can determine whether any are in flight.
 *
 * Connections to the port of kubectl's proxy are redirected to the run. */

#include "clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

/* Variants with a buffer size, which compilers call with -D_FORTIFY_SOURCE. */
ssize_t __read_chk(int file, void *to, size_t count, size_t size);
ssize_t __recv_chk(int file, void *to, size_t count, size_t size, int flags);
ssize_t __recvfrom_chk(int file, void *restrict to, size_t count, size_t size, int flags,
                       struct sockaddr *restrict from, socklen_t *restrict length);

/* The kind of each open file, determined when it is first needed. */
enum { FILES = 65536, UNKNOWN = 0, OTHER = 1, RUN = 2 };
static _Atomic uint8_t kinds[FILES];

static void reset_kind(int file) {
    unregister_connection(file);
    if (file >= 0 && file < FILES) atomic_store(&kinds[file], UNKNOWN);
}

static bool leads_to_run(const struct sockaddr *address) {
    const struct sockaddr_in *place = (const struct sockaddr_in *)address;
    return place->sin_family == AF_INET && ntohl(place->sin_addr.s_addr) == INADDR_LOOPBACK &&
           ntohs(place->sin_port) == page->port;
}

static bool is_run_connection(int file) {
    if (!is_virtual() || file < 0 || file >= FILES) return false;
    int kind = atomic_load(&kinds[file]);
    if (kind == UNKNOWN) {
        struct sockaddr_storage peer = {0};
        socklen_t length = sizeof peer;
        int problem = errno;
        bool is_connected = getpeername(file, (struct sockaddr *)&peer, &length) == 0;
        /* A socket that is not connected may be connected later. */
        bool may_change = !is_connected && errno == ENOTCONN;
        errno = problem;
        kind = is_connected && leads_to_run((struct sockaddr *)&peer) ? RUN : OTHER;
        if (!may_change) atomic_store(&kinds[file], (uint8_t)kind);
    }
    return kind == RUN;
}

/* Count a write, connect or close before the peer can observe it; return whether the peer is the run. */
static bool count_write(int file) {
    if (!is_run_connection(file)) return false;
    atomic_fetch_add(&page->wrote, 1);
    return true;
}

static ssize_t count_sent(bool is_run, ssize_t count) {
    if (is_run && count > 0) atomic_fetch_add(&page->sent, count);
    return count;
}

/* Wait for data on a connection to the run, as the call itself would, and then for the whole piece. Return whether the
 * call can proceed; if not, errno is set. */
static bool await_readable(int file, int flags) {
    if (!is_run_connection(file)) return true;
    char byte;
    REAL(recv);
    if (!(flags & MSG_DONTWAIT) && real(file, &byte, 1, MSG_PEEK) < 0) return false;
    await_arrival();
    return true;
}

static ssize_t count_received(int file, ssize_t count, int flags) {
    if (count > 0 && !(flags & MSG_PEEK) && is_run_connection(file)) atomic_fetch_add(&page->got, count);
    return count;
}

/* Opening and closing */

/* Large enough for the longest piece of the run's server (api/connections/polled/server.py). Every program may set it:
 * it is the smallest default of net.core.rmem_max. */
enum { RECEIVE_BUFFER = 212992 };

int socket(int domain, int type, int protocol) {
    REAL(socket);
    int file = real(domain, type, protocol);
    reset_kind(file);
    return file;
}

int connect(int file, const struct sockaddr *address, socklen_t length) {
    REAL(connect);
    if (!is_virtual() || (address->sa_family != AF_INET && address->sa_family != AF_INET6)) {
        return real(file, address, length);
    }
    struct sockaddr_in place;
    if (address->sa_family == AF_INET && length >= sizeof place) {
        memcpy(&place, address, sizeof place);
        bool is_local = (ntohl(place.sin_addr.s_addr) >> 24) == 127;
        if (is_local && page->proxy_port && ntohs(place.sin_port) == page->proxy_port) {
            place.sin_port = htons((uint16_t)page->port);
            address = (struct sockaddr *)&place;
            length = sizeof place;
        }
        if (leads_to_run(address)) {
            atomic_fetch_add(&page->wrote, 1);
            atomic_fetch_add(&page->connects, 1);
            if (file >= 0 && file < FILES) atomic_store(&kinds[file], RUN);
            int room = RECEIVE_BUFFER;
            setsockopt(file, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
            int result = real(file, address, length);
            register_connection(file);
            return result;
        }
    }
    int type = 0;
    socklen_t size = sizeof type;
    getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &size);
    int result = real(file, address, length);
    /* connect(2) on a datagram socket only sets its peer, and a refused connection does not count. */
    if (type == SOCK_STREAM && (result == 0 || errno == EINPROGRESS)) atomic_fetch_add(&page->elsewhere, 1);
    return result;
}

int close(int file) {
    REAL(close);
    count_write(file);
    reset_kind(file);
    return real(file);
}

int shutdown(int file, int how) {
    REAL(shutdown);
    count_write(file);
    return real(file, how);
}

int dup(int file) {
    REAL(dup);
    int copy = real(file);
    reset_kind(copy);
    return copy;
}

int dup2(int file, int to) {
    REAL(dup2);
    if (file != to) {
        count_write(to);
        reset_kind(to);
    }
    return real(file, to);
}

int dup3(int file, int to, int flags) {
    REAL(dup3);
    count_write(to);
    reset_kind(to);
    return real(file, to, flags);
}

int setsockopt(int file, int level, int name, const void *value, socklen_t size) {
    REAL(setsockopt);
    static const struct timeval none;
    bool is_timeout = level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO);
    if (is_timeout && size >= sizeof none && memcmp(value, &none, sizeof none) != 0) record_unsupported(FEATURE_SOCKET);
    return real(file, level, name, value, size);
}

/* Writing */

ssize_t write(int file, const void *from, size_t count) {
    REAL(write);
    return count_sent(count_write(file), real(file, from, count));
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    REAL(writev);
    return count_sent(count_write(file), real(file, parts, count));
}

ssize_t send(int file, const void *from, size_t count, int flags) {
    REAL(send);
    return count_sent(count_write(file), real(file, from, count, flags));
}

ssize_t sendto(int file, const void *from, size_t count, int flags, const struct sockaddr *to, socklen_t length) {
    REAL(sendto);
    return count_sent(count_write(file), real(file, from, count, flags, to, length));
}

ssize_t sendmsg(int file, const struct msghdr *message, int flags) {
    REAL(sendmsg);
    return count_sent(count_write(file), real(file, message, flags));
}

/* Reading */

ssize_t read(int file, void *to, size_t count) {
    REAL(read);
    return await_readable(file, 0) ? count_received(file, real(file, to, count), 0) : -1;
}

ssize_t readv(int file, const struct iovec *parts, int count) {
    REAL(readv);
    return await_readable(file, 0) ? count_received(file, real(file, parts, count), 0) : -1;
}

ssize_t recv(int file, void *to, size_t count, int flags) {
    REAL(recv);
    return await_readable(file, flags) ? count_received(file, real(file, to, count, flags), flags) : -1;
}

ssize_t recvfrom(int file, void *restrict to, size_t count, int flags, struct sockaddr *restrict from,
                 socklen_t *restrict length) {
    REAL(recvfrom);
    return await_readable(file, flags) ? count_received(file, real(file, to, count, flags, from, length), flags) : -1;
}

ssize_t recvmsg(int file, struct msghdr *message, int flags) {
    REAL(recvmsg);
    return await_readable(file, flags) ? count_received(file, real(file, message, flags), flags) : -1;
}

ssize_t __read_chk(int file, void *to, size_t count, size_t size) {
    if (size < count) abort();
    return read(file, to, count);
}

ssize_t __recv_chk(int file, void *to, size_t count, size_t size, int flags) {
    if (size < count) abort();
    return recv(file, to, count, flags);
}

ssize_t __recvfrom_chk(int file, void *restrict to, size_t count, size_t size, int flags,
                       struct sockaddr *restrict from, socklen_t *restrict length) {
    if (size < count) abort();
    return recvfrom(file, to, count, flags, from, length);
}
