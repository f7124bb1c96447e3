// SPDX-License-Identifier: Apache-2.0
//     attach_census [children]
// A thread for each of many calls that wait: works a little, then waits a little, again and again, and counts what it
// should not see: EINTR, a wait that was too short, or a signal that did not wake it. At the end of standard input:
// "NAME CALLS BAD LATE ERRNO", a line each; LATE: waits that took 20 ms longer than they should (for information).
// With children there are signals that are ignored, too.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 1, WAIT_NS = 1000000, LATE_NS = 20000000, SIGNAL_WAIT_MS = 10000 };
static const struct timespec wait_time = {0, WAIT_NS};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void work(uint64_t for_ns)
{
    uint64_t end_ns = now_ns() + for_ns;
    while (now_ns() < end_ns)
        ;
}

// Each waits once: 0 where that went as it should, errno where not. `own` is the thread's own.
struct own {
    int fd, other;
    sem_t semaphore;
};

static int failed(long result, int wanted_errno)
{
    if (result >= 0)
        return 0;
    return errno == wanted_errno ? 0 : errno;
}

static int do_nanosleep(struct own *own)
{
    struct timespec left = {0, 0};
    (void)own;
    return failed(nanosleep(&wait_time, &left), 0);
}

static int do_poll(struct own *own)
{
    struct pollfd in = {own->fd, POLLIN, 0};
    return failed(poll(&in, 1, WAIT_MS), 0);
}

static int do_select(struct own *own)
{
    fd_set set;
    struct timeval timeout = {0, WAIT_NS / 1000};
    FD_ZERO(&set);
    FD_SET(own->fd, &set);
    return failed(select(own->fd + 1, &set, NULL, NULL, &timeout), 0);
}

static int do_epoll(struct own *own)
{
    struct epoll_event event;
    return failed(epoll_wait(own->other, &event, 1, WAIT_MS), 0);
}

static int do_epoll_masked(struct own *own)
{
    struct epoll_event event;
    sigset_t none;
    sigemptyset(&none);
    return failed(epoll_pwait(own->other, &event, 1, WAIT_MS, &none), 0);
}

static int do_semaphore(struct own *own)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_NS;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    return failed(sem_timedwait(&own->semaphore, &until), ETIMEDOUT);
}

static int do_receive(struct own *own)
{
    char byte;
    return failed(recv(own->fd, &byte, 1, 0), EAGAIN);
}

static int do_read(struct own *own)
{
    char byte;
    return failed(read(own->fd, &byte, 1), EAGAIN);
}

static int do_accept(struct own *own)
{
    return failed(accept(own->other, NULL, NULL), EAGAIN);
}

static int do_sysv(struct own *own)
{
    struct sembuf down = {0, -1, 0};
    return failed(semtimedop(own->other, &down, 1, &wait_time), EAGAIN);
}

static int do_sigwait(struct own *own)
{
    sigset_t set;
    (void)own;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return failed(sigtimedwait(&set, NULL, &wait_time), EAGAIN);
}

// A pipe that another thread of this program writes to every now and then.
static int do_pipe(struct own *own)
{
    char byte;
    return read(own->fd, &byte, 1) == 1 ? 0 : errno;
}

static void *feed_pipe(void *argument)
{
    for (;;) {
        nanosleep(&wait_time, NULL);
        if (write(*(const int *)argument, "", 1) != 1)
            return NULL;
    }
}

// A signal with a handler must end the wait, at whatever moment it comes: blocked but in epoll_pwait.
static _Thread_local volatile sig_atomic_t handled;
static void on_signal(int number)
{
    (void)number;
    handled = 1;
}

static _Atomic unsigned signal_wanted;
static pthread_t signal_waiter;

static void *send_signals(void *unused)
{
    unsigned random = 1;
    (void)unused;
    for (;;) {
        while (!atomic_exchange_explicit(&signal_wanted, 0, memory_order_acq_rel))
            sched_yield();
        random = random * 1103515245 + 12345;
        work(random / 65536 % 200000);
        pthread_kill(signal_waiter, SIGUSR1);
    }
    return NULL;
}

static int do_wake(struct own *own)
{
    struct epoll_event event;
    sigset_t none;
    sigemptyset(&none);
    handled = 0;
    atomic_store_explicit(&signal_wanted, 1, memory_order_release);
    work(50000);
    int result = epoll_pwait(own->other, &event, 1, SIGNAL_WAIT_MS, &none);
    return result == -1 && errno == EINTR && handled ? 0 : result == 0 ? ETIMEDOUT : EPROTO;
}

static struct kind {
    const char *name;
    int (*wait)(struct own *own);
    uint64_t least_ns; // it takes that long
    _Atomic uint64_t calls, bad, late;
    _Atomic int error;
} kinds[] = {
    {.name = "nanosleep", .wait = do_nanosleep, .least_ns = WAIT_NS},
    {.name = "poll", .wait = do_poll, .least_ns = WAIT_NS},
    {.name = "select", .wait = do_select, .least_ns = WAIT_NS},
    {.name = "epoll_wait", .wait = do_epoll, .least_ns = WAIT_NS},
    {.name = "epoll_pwait", .wait = do_epoll_masked, .least_ns = WAIT_NS},
    {.name = "sem_timedwait", .wait = do_semaphore},
    {.name = "recv", .wait = do_receive},
    {.name = "read_socket", .wait = do_read},
    {.name = "accept", .wait = do_accept},
    {.name = "semtimedop", .wait = do_sysv, .least_ns = WAIT_NS},
    {.name = "sigtimedwait", .wait = do_sigwait, .least_ns = WAIT_NS},
    {.name = "read_pipe", .wait = do_pipe},
    {.name = "signal_wakes", .wait = do_wake},
};

static void prepare(struct kind *kind, struct own *own)
{
    int pair[2];
    const struct timeval timeout = {0, WAIT_NS / 1000};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    if (kind->wait == do_wake)
        sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    sem_init(&own->semaphore, 0, 0);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        _exit(3);
    own->fd = pair[0];
    setsockopt(own->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    own->other = epoll_create1(0);
    pthread_t other;
    if (kind->wait == do_accept) {
        const struct sockaddr_un nowhere = {.sun_family = AF_UNIX};
        own->other = socket(AF_UNIX, SOCK_STREAM, 0);
        if (bind(own->other, (const struct sockaddr *)&nowhere, sizeof nowhere.sun_family) != 0 ||
            listen(own->other, 1) != 0)
            _exit(3);
        setsockopt(own->other, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    } else if (kind->wait == do_sysv) {
        own->other = semget(IPC_PRIVATE, 1, 0600);
    } else if (kind->wait == do_pipe) {
        if (pipe(pair) != 0)
            _exit(3);
        own->fd = pair[0];
        own->other = pair[1];
        pthread_create(&other, NULL, feed_pipe, &own->other);
    } else if (kind->wait == do_wake) {
        signal_waiter = pthread_self();
        pthread_create(&other, NULL, send_signals, NULL);
    }
}

static void *run(void *argument)
{
    struct kind *kind = argument;
    struct own own;
    unsigned random = (unsigned)(uintptr_t)argument;
    prepare(kind, &own);
    prctl(PR_SET_NAME, kind->name);
    for (;;) {
        random = random * 1103515245 + 12345;
        work(20000 + random / 65536 % 60000);
        uint64_t begin_ns = now_ns();
        int error = kind->wait(&own);
        uint64_t took_ns = now_ns() - begin_ns;
        kind->calls++;
        if (error != 0 || took_ns < kind->least_ns) {
            kind->bad++;
            kind->error = error;
        }
        kind->late += took_ns > WAIT_NS + LATE_NS;
    }
    return NULL;
}

// Children whose end no thread handles: SIGCHLD is ignored, and must wake no thread.
static void *have_children(void *unused)
{
    (void)unused;
    for (;;) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        kill(getpid(), SIGWINCH);
        usleep(5000);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    pthread_t thread;
    char byte;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigaction(SIGUSR1, &action, NULL);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        pthread_create(&thread, NULL, run, &kinds[i]);
    if (argc > 1 && strcmp(argv[1], "children") == 0)
        pthread_create(&thread, NULL, have_children, NULL);
    printf("ready\n");
    fflush(stdout);
    while (read(0, &byte, 1) < 0 && errno == EINTR)
        ;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        printf("%s %llu %llu %llu %d\n", kinds[i].name, (unsigned long long)kinds[i].calls,
               (unsigned long long)kinds[i].bad, (unsigned long long)kinds[i].late, kinds[i].error);
    return 0;
}
