/* Test program: calls all C functions that wait, on the run's clock, and prints when and how each one returned. */

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t began;

static int64_t monotonic_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void report(const char *what) {
    printf("%lld %s\n", (long long)(monotonic_ms() - began), what);
    fflush(stdout);
}

static struct timespec in_ms(clockid_t clock, int64_t ms) {
    struct timespec at;
    clock_gettime(clock, &at);
    int64_t ns = at.tv_nsec + ms * 1000000;
    return (struct timespec){.tv_sec = at.tv_sec + ns / 1000000000, .tv_nsec = ns % 1000000000};
}

static void sleeps(void) {
    sleep(3600);
    report("sleep");
    usleep(500000);
    report("usleep");
    struct timespec span = {.tv_sec = 86400};
    nanosleep(&span, NULL);
    report("nanosleep");
    struct timespec at = in_ms(CLOCK_REALTIME, 1500);
    clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL);
    report("clock_nanosleep");
}

static void files(void) {
    int ends[2];
    if (pipe(ends)) return;
    struct pollfd reading = {.fd = ends[0], .events = POLLIN};
    report(poll(&reading, 1, 2000) == 0 ? "poll" : "poll failed");
    struct timespec span = {.tv_sec = 2};
    report(ppoll(&reading, 1, &span, NULL) == 0 ? "ppoll" : "ppoll failed");
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    struct timeval time = {.tv_sec = 3, .tv_usec = 250000};
    report(select(ends[0] + 1, &set, NULL, NULL, &time) == 0 && !FD_ISSET(ends[0], &set) ? "select" : "select failed");
    int watched = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(watched, EPOLL_CTL_ADD, ends[0], &event);
    report(epoll_wait(watched, &event, 1, 4000) == 0 ? "epoll_wait" : "epoll_wait failed");
    if (write(ends[1], "x", 1) != 1) return;
    report(epoll_wait(watched, &event, 1, 4000) == 1 ? "epoll_wait at once" : "epoll_wait failed");
    report(poll(&reading, 1, 4000) == 1 && reading.revents == POLLIN ? "poll at once" : "poll failed");
}

static void children(void) {
    int ends[2];
    if (pipe(ends)) return;
    pid_t child = fork();
    if (child == 0) {
        sleep(100);
        if (write(ends[1], "x", 1) != 1) _exit(1);
        sleep(100);
        _exit(7);
    }
    char byte;
    if (read(ends[0], &byte, 1) == 1) report("read from a child");
    int status = 0;
    waitpid(child, &status, 0);
    report(WEXITSTATUS(status) == 7 ? "waitpid" : "waitpid failed");
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;

static void *post(void *unused) {
    sleep(30);
    sem_post(&semaphore);
    sleep(30);
    pthread_mutex_lock(&mutex);
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    usleep(500000);
    pthread_mutex_lock(&mutex);
    sleep(30);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void threads(void) {
    sem_init(&semaphore, 0, 0);
    struct timespec at = in_ms(CLOCK_REALTIME, 10000);
    report(sem_timedwait(&semaphore, &at) && errno == ETIMEDOUT ? "sem_timedwait" : "sem_timedwait failed");
    pthread_mutex_lock(&mutex);
    at = in_ms(CLOCK_REALTIME, 20000);
    report(pthread_cond_timedwait(&condition, &mutex, &at) == ETIMEDOUT ? "cond_timedwait" : "cond_timedwait failed");
    at = in_ms(CLOCK_MONOTONIC, 20000);
    int result = pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &at);
    report(result == ETIMEDOUT ? "cond_clockwait" : "cond_clockwait failed");
    pthread_t other;
    pthread_create(&other, NULL, post, NULL);
    at = in_ms(CLOCK_REALTIME, 40000);
    report(sem_timedwait(&semaphore, &at) == 0 ? "sem_timedwait posted" : "sem_timedwait failed");
    at = in_ms(CLOCK_REALTIME, 40000);
    report(pthread_cond_timedwait(&condition, &mutex, &at) == 0 ? "cond_timedwait signalled" : "cond_timedwait failed");
    pthread_mutex_unlock(&mutex);
    sleep(1);
    at = in_ms(CLOCK_REALTIME, 4000);
    report(pthread_mutex_timedlock(&mutex, &at) == ETIMEDOUT ? "mutex_timedlock" : "mutex_timedlock failed");
    at = in_ms(CLOCK_REALTIME, 40000);
    report(pthread_mutex_timedlock(&mutex, &at) == 0 ? "mutex_timedlock locked" : "mutex_timedlock failed");
    pthread_join(other, NULL);
    report("join");
}

static void *tick(void *period_ms) {
    char line[32];
    int64_t period = (intptr_t)period_ms;
    for (int count = 1; count <= 5; count++) {
        usleep((useconds_t)(period * 1000));
        snprintf(line, sizeof line, "tick of %lld", (long long)period);
        pthread_mutex_lock(&mutex);
        report(line);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void ticks(void) {
    pthread_t threads[3];
    const intptr_t periods[3] = {700, 1100, 1300};
    for (int each = 0; each < 3; each++) pthread_create(&threads[each], NULL, tick, (void *)periods[each]);
    for (int each = 0; each < 3; each++) pthread_join(threads[each], NULL);
    report("join");
}

int main(int count, char **words) {
    struct timeval now;
    gettimeofday(&now, NULL);
    printf("%lld %lld\n", (long long)time(NULL), (long long)now.tv_sec);
    began = monotonic_ms();
    const char *what = count > 1 ? words[1] : "";
    if (!strcmp(what, "sleeps")) sleeps();
    if (!strcmp(what, "files")) files();
    if (!strcmp(what, "children")) children();
    if (!strcmp(what, "threads")) threads();
    if (!strcmp(what, "ticks")) ticks();
    return 0;
}
