/* Connections to the run: what is on its way on them is counted, so that the coordinator can tell that nothing is.
 *
 * A connection to the port where kubectl's proxy would be leads to the run as well. */

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

/* The C library's check that a buffer is large enough has been made by the compiler already. */
ssize_t __read_chk(int file, void *to, size_t count, size_t size);
ssize_t __recv_chk(int file, void *to, size_t count, size_t size, int flags);
ssize_t __recvfrom_chk(int file, void *restrict to, size_t count, size_t size, int flags,
                       struct sockaddr *restrict from, socklen_t *restrict length);

/* What is known of each open file; a table in which nothing is known of most of them. */
enum { FILES = 65536, UNKNOWN = 0, OTHER = 1, OURS = 2 };
static _Atomic uint8_t kinds[FILES];

static void forget(int file) {
    connection_ended(file);
    if (file >= 0 && file < FILES) atomic_store(&kinds[file], UNKNOWN);
}

static bool leads_to_run(const struct sockaddr *address) {
    const struct sockaddr_in *place = (const struct sockaddr_in *)address;
    return place->sin_family == AF_INET && ntohl(place->sin_addr.s_addr) == INADDR_LOOPBACK &&
           ntohs(place->sin_port) == page->port;
}

static bool is_ours(int file) {
    if (!is_virtual() || file < 0 || file >= FILES) return false;
    int kind = atomic_load(&kinds[file]);
    if (kind == UNKNOWN) {
        struct sockaddr_storage peer = {0};
        socklen_t length = sizeof peer;
        int problem = errno;
        bool is_connected = getpeername(file, (struct sockaddr *)&peer, &length) == 0;
        /* A socket that is not connected may be one day. */
        bool may_be = !is_connected && errno == ENOTCONN;
        errno = problem;
        kind = is_connected && leads_to_run((struct sockaddr *)&peer) ? OURS : OTHER;
        if (!may_be) atomic_store(&kinds[file], (uint8_t)kind);
    }
    return kind == OURS;
}

/* Say, before it happens, that the other side will notice something. */
static bool touch(int file) {
    if (!is_ours(file)) return false;
    atomic_fetch_add(&page->wrote, 1);
    return true;
}

static ssize_t sent(bool is_run, ssize_t count) {
    if (is_run && count > 0) atomic_fetch_add(&page->sent, count);
    return count;
}

/* Wait for something to read on a connection to the run, as the call itself would, and then for all of it. Return
 * whether the call may go on; if not, errno says why. */
static bool arrives(int file, int flags) {
    if (!is_ours(file)) return true;
    char byte;
    REAL(recv);
    if (!(flags & MSG_DONTWAIT) && real(file, &byte, 1, MSG_PEEK) < 0) return false;
    await_arrival();
    return true;
}

static ssize_t got(int file, ssize_t count, int flags) {
    if (count > 0 && !(flags & MSG_PEEK) && is_ours(file)) atomic_fetch_add(&page->got, count);
    return count;
}

/* Beginnings and ends */

/* Room for what the run's server sends in one piece (api/connections/polled/server.py). Linux gives so much to every program:
 * it is the smallest default of net.core.rmem_max. */
enum { RECEIVE_BUFFER = 212992 };

int socket(int domain, int type, int protocol) {
    REAL(socket);
    int file = real(domain, type, protocol);
    forget(file);
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
            if (file >= 0 && file < FILES) atomic_store(&kinds[file], OURS);
            int room = RECEIVE_BUFFER;
            setsockopt(file, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
            int result = real(file, address, length);
            connection_began(file);
            return result;
        }
    }
    int type = 0;
    socklen_t size = sizeof type;
    getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &size);
    int result = real(file, address, length);
    /* A datagram socket is only told where to; one that is refused leads nowhere. */
    if (type == SOCK_STREAM && (result == 0 || errno == EINPROGRESS)) atomic_fetch_add(&page->elsewhere, 1);
    return result;
}

int close(int file) {
    REAL(close);
    touch(file);
    forget(file);
    return real(file);
}

int shutdown(int file, int how) {
    REAL(shutdown);
    touch(file);
    return real(file, how);
}

int dup(int file) {
    REAL(dup);
    int copy = real(file);
    forget(copy);
    return copy;
}

int dup2(int file, int to) {
    REAL(dup2);
    if (file != to) {
        touch(to);
        forget(to);
    }
    return real(file, to);
}

int dup3(int file, int to, int flags) {
    REAL(dup3);
    touch(to);
    forget(to);
    return real(file, to, flags);
}

int setsockopt(int file, int level, int name, const void *value, socklen_t size) {
    REAL(setsockopt);
    static const struct timeval none;
    bool is_timeout = level == SOL_SOCKET && (name == SO_RCVTIMEO || name == SO_SNDTIMEO);
    if (is_timeout && size >= sizeof none && memcmp(value, &none, sizeof none) != 0) lacking(LACK_SOCKET);
    return real(file, level, name, value, size);
}

/* Writing */

ssize_t write(int file, const void *from, size_t count) {
    REAL(write);
    return sent(touch(file), real(file, from, count));
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    REAL(writev);
    return sent(touch(file), real(file, parts, count));
}

ssize_t send(int file, const void *from, size_t count, int flags) {
    REAL(send);
    return sent(touch(file), real(file, from, count, flags));
}

ssize_t sendto(int file, const void *from, size_t count, int flags, const struct sockaddr *to, socklen_t length) {
    REAL(sendto);
    return sent(touch(file), real(file, from, count, flags, to, length));
}

ssize_t sendmsg(int file, const struct msghdr *message, int flags) {
    REAL(sendmsg);
    return sent(touch(file), real(file, message, flags));
}

/* Reading */

ssize_t read(int file, void *to, size_t count) {
    REAL(read);
    return arrives(file, 0) ? got(file, real(file, to, count), 0) : -1;
}

ssize_t readv(int file, const struct iovec *parts, int count) {
    REAL(readv);
    return arrives(file, 0) ? got(file, real(file, parts, count), 0) : -1;
}

ssize_t recv(int file, void *to, size_t count, int flags) {
    REAL(recv);
    return arrives(file, flags) ? got(file, real(file, to, count, flags), flags) : -1;
}

ssize_t recvfrom(int file, void *restrict to, size_t count, int flags, struct sockaddr *restrict from,
                 socklen_t *restrict length) {
    REAL(recvfrom);
    return arrives(file, flags) ? got(file, real(file, to, count, flags, from, length), flags) : -1;
}

ssize_t recvmsg(int file, struct msghdr *message, int flags) {
    REAL(recvmsg);
    return arrives(file, flags) ? got(file, real(file, message, flags), flags) : -1;
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
