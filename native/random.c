/* Random numbers from the run's seed, so that a program behaves the same in every run. Each process has a sequence of
 * its own. */

#include "clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static _Atomic uint64_t state;
static _Atomic int seeded_process;

/* splitmix64 */
static uint64_t draw(void) {
    uint64_t mixed = atomic_fetch_add(&state, UINT64_C(0x9e3779b97f4a7c15)) + UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

static bool is_deterministic(void) {
    if (!is_virtual() || !(atomic_load(&page->flags) & DETERMINISTIC)) return false;
    if (atomic_exchange(&seeded_process, (int)getpid()) != (int)getpid()) {
        atomic_store(&state, page->seed);
        atomic_store(&state, draw() + atomic_fetch_add(&page->processes, 1));
    }
    return true;
}

static void fill(void *to, size_t size) {
    uint8_t *bytes = to;
    for (size_t each = 0; each < size; each += 8) {
        uint64_t word = draw();
        memcpy(bytes + each, &word, size - each < 8 ? size - each : 8);
    }
}

ssize_t getrandom(void *to, size_t size, unsigned flags) {
    if (!is_deterministic()) {
        REAL(getrandom);
        return real(to, size, flags);
    }
    fill(to, size);
    return (ssize_t)size;
}

int getentropy(void *to, size_t size) {
    if (!is_deterministic()) {
        REAL(getentropy);
        return real(to, size);
    }
    if (size > 256) {
        errno = EIO;
        return -1;
    }
    fill(to, size);
    return 0;
}
