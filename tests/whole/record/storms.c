// SPDX-License-Identifier: Apache-2.0
// A program that does to itself what recorders fear, and keeps its own account: it says what should have come of it,
// and exits with 1 where something else did. Usage: storms WHAT [COUNT]
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4 };
static int count = 200;
static const char *own_path;

static _Noreturn void fail(const char *what, long number)
{
    dprintf(2, "storms: %s: %ld (%s)\n", what, number, strerror(errno));
    _exit(1);
}

static unsigned work(unsigned rounds)
{
    volatile unsigned sum = 0;
    for (unsigned i = 0; i < rounds; i++)
        sum += i;
    return sum;
}

static void in_threads(void *(*run)(void *))
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)i) != 0)
            fail("pthread_create", i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

// ---- signals: queued ones come exactly as often as they were sent, on stacks of their own, jumped out of or not

static _Atomic int handled;
static _Thread_local sigjmp_buf before;
static _Thread_local volatile sig_atomic_t may_jump, profiled;

static void on_queued(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    work(200);
    atomic_fetch_add_explicit(&handled, 1, memory_order_relaxed);
    if (info->si_value.sival_int % 2 && may_jump)
        siglongjmp(before, 1);
}

static void on_profile(int number)
{
    (void)number;
    profiled = profiled + 1;
}

static void *signal_self(void *unused)
{
    (void)unused;
    stack_t stack = {.ss_sp = malloc(64 << 10), .ss_size = 64 << 10}, none = {.ss_flags = SS_DISABLE};
    sigaltstack(&stack, NULL);
    for (volatile int i = 0; i < count; i = i + 1) {
        if (sigsetjmp(before, 1) == 0) {
            may_jump = 1;
            pthread_sigqueue(pthread_self(), SIGRTMIN + 3, (union sigval){.sival_int = i});
            work(3000);
        }
        may_jump = 0;
    }
    sigaltstack(&none, NULL);
    free(stack.ss_sp);
    return NULL;
}

static void signals(void)
{
    struct sigaction queued = {.sa_sigaction = on_queued, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction profile = {.sa_handler = on_profile, .sa_flags = SA_RESTART};
    sigaction(SIGRTMIN + 3, &queued, NULL);
    sigaction(SIGPROF, &profile, NULL);
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_PROF, &often, NULL);
    in_threads(signal_self);
    setitimer(ITIMER_PROF, &never, NULL);
    printf("%d of %d signals handled\n", handled, THREADS * count);
}

// ---- children: each ends as it was told, whoever made it

static void expect_end(pid_t child, int wanted)
{
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child)
        fail("no child", child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != wanted)
        fail("a child's status", status);
}

static void *fork_much(void *number)
{
    for (int i = 0; i < count / 4; i++) {
        int wanted = (int)((long)number + i) % 100;
        pid_t child = fork();
        if (child == 0) {
            free(malloc(work(2000) % 100 + 1));
            _exit(wanted);
        }
        expect_end(child, wanted);
    }
    return NULL;
}

static __attribute__((noinline)) pid_t vfork_one(const char *program, int wanted, const char *wanted_text)
{
    pid_t child = vfork();
    if (child == 0) {
        if (program)
            execl(program, program, "exit", wanted_text, (char *)NULL);
        _exit(wanted);
    }
    return child;
}

static void *vfork_much(void *number)
{
    for (int i = 0; i < count / 8; i++) {
        int wanted = (int)((long)number + i) % 100;
        char text[12];
        snprintf(text, sizeof text, "%d", wanted);
        expect_end(vfork_one(i % 2 ? own_path : NULL, wanted, text), wanted);
    }
    return NULL;
}

// ---- one process that is many programs, replaced from any of its threads

static void *exec_next(void *left)
{
    char text[12];
    snprintf(text, sizeof text, "%d", (int)(long)left - 1);
    work(100000);
    execl(own_path, own_path, "execs", text, (char *)NULL);
    fail("exec", (long)left);
    return NULL;
}

static void execs(void)
{
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    if (!getenv("STORMS_PID"))
        setenv("STORMS_PID", pid, 1);
    if (strcmp(pid, getenv("STORMS_PID")) != 0)
        fail("another process", getpid());
    if (count == 0) {
        puts("the last program of one process");
        return;
    }
    pthread_t thread;
    if (count % 2)
        exec_next((void *)(long)count);
    pthread_create(&thread, NULL, exec_next, (void *)(long)count);
    pthread_join(thread, NULL);
}

// ---- libraries come and go under threads that run

static const char *const libraries[] = {"libz.so.1", "liblzma.so.5", "libelf.so.1", "libm.so.6"};

static void *load_much(void *number)
{
    for (int i = 0; i < count; i++) {
        void *library = dlopen(libraries[((long)number + i) % 4], RTLD_NOW | RTLD_LOCAL);
        work(5000);
        if (library)
            dlclose(library);
    }
    return NULL;
}

// ---- descriptors closed under everybody, and their numbers taken again: what is in a pipe is what was written

static void descriptors(void)
{
    char text[64];
    for (int round = 0; round < count; round++) {
        for (int fd = 3; fd < 64; fd++)
            close(fd);
        int pipes[24][2], made = 0;
        while (made < 24 && pipe2(pipes[made], O_NONBLOCK) == 0)
            made++;
        work(20000);
        free(malloc(100 + (unsigned)round));
        for (int i = 0; i < made; i++) {
            if (write(pipes[i][1], &round, sizeof round) != sizeof round)
                fail("write", i);
            if (read(pipes[i][0], text, sizeof text) != sizeof round || memcmp(text, &round, sizeof round) != 0)
                fail("what somebody else wrote", i);
            close(pipes[i][0]);
            close(pipes[i][1]);
        }
        if (made != 24)
            fail("pipes", made);
    }
    puts("nobody wrote into our descriptors");
}

// ---- another root, another parent

static void other_root(void)
{
    char folder[] = "/tmp/storms-XXXXXX";
    if (!mkdtemp(folder) || chroot(folder) != 0 || chdir("/") != 0)
        fail("chroot", 0);
    in_threads(fork_much);
    work(30000000);
    puts("in another root");
}

static void daemon_of(const char *path)
{
    if (daemon(1, 1) != 0)
        fail("daemon", 0);
    setsid();
    work(100000000);
    FILE *file = fopen(path, "w");
    if (!file || fputs("the daemon ended by itself\n", file) < 0 || fclose(file) != 0)
        _exit(1);
}

static void *end_at_once(void *unused)
{
    return unused;
}

static void threads(void)
{
    for (int i = 0; i < 5 * count; i++) {
        pthread_t thread;
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, i % 2 ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
        while (pthread_create(&thread, &attributes, end_at_once, NULL) != 0)
            sched_yield();
        if (i % 2 == 0)
            pthread_join(thread, NULL);
        pthread_attr_destroy(&attributes);
    }
    puts("all threads were made");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    own_path = realpath("/proc/self/exe", NULL);
    if (strcmp(what, "daemon") == 0 && argc > 2) {
        daemon_of(argv[2]);
        return 0;
    }
    if (argc > 2)
        count = atoi(argv[2]);
    if (strcmp(what, "exit") == 0)
        return count;
    if (strcmp(what, "signals") == 0)
        signals();
    else if (strcmp(what, "forks") == 0)
        in_threads(fork_much);
    else if (strcmp(what, "vforks") == 0)
        in_threads(vfork_much);
    else if (strcmp(what, "execs") == 0)
        execs();
    else if (strcmp(what, "loads") == 0)
        in_threads(load_much);
    else if (strcmp(what, "descriptors") == 0)
        descriptors();
    else if (strcmp(what, "chroot") == 0)
        other_root();
    else if (strcmp(what, "threads") == 0)
        threads();
    else
        return 2;
    printf("%s: as they should be\n", what);
    return 0;
}
