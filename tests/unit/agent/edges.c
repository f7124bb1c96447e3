// SPDX-License-Identifier: Apache-2.0
// Things that few programs do. Prints what it sees; with the agent, that is the same.
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

sighandler_t bsd_signal(int number, sighandler_t handler);
int sigblock(int mask);
int sigsetmask(int mask);

static volatile sig_atomic_t handled;

static void on_signal(int number)
{
    handled += number;
}

static double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void spin_ms(double ms)
{
    double until = cpu_ms() + ms;
    while (cpu_ms() < until) {
        for (volatile int i = 0; i < 20000; i = i + 1) { // asking is a system call, which has no ticks
        }
    }
}

static const char *name_of(sighandler_t handler)
{
    return handler == SIG_DFL           ? "default"
           : handler == SIG_IGN         ? "ignored"
           : handler == SIG_ERR         ? "error"
           : handler == (sighandler_t)2 ? "held"
           : handler == on_signal       ? "ours"
                                        : "another";
}

// What the kernel has for a signal.
static int kernel_masks(int number, int what)
{
    struct {
        void *handler;
        unsigned long flags, restorer;
        unsigned long long mask;
    } action = {0};
    syscall(SYS_rt_sigaction, number, NULL, &action, sizeof action.mask);
    return (int)(action.mask >> (what - 1) & 1);
}

// ---- the signal of ticks, by functions of old

static void old_signals(int number)
{
    printf("set %s\n", name_of(sigset(number, on_signal)));
    raise(number);
    printf("held %s\n", name_of(sigset(number, (sighandler_t)2)));
    raise(number);
    spin_ms(5);
    printf("handled %d\n", (int)handled);
    printf("released %s\n", name_of(sigset(number, on_signal)));
    printf("handled %d\n", (int)handled);
    printf("hold %d\n", sighold(number));
    raise(number);
    spin_ms(5);
    printf("handled %d\n", (int)handled);
    printf("release %d\n", sigrelse(number));
    printf("handled %d\n", (int)handled);
    printf("ignore %d\n", sigignore(number));
    raise(number);
    printf("bsd %s\n", name_of(bsd_signal(number, on_signal)));
    raise(number);
    printf("same %s\n", name_of(ssignal(number, on_signal)));
    raise(number);
    printf("handled %d\n", (int)handled);
    int before = sigblock(1 << (number - 1));
    raise(number);
    printf("block %x, handled %d\n", (unsigned)before, (int)handled);
    before = sigsetmask(0);
    printf("set %x, handled %d\n", (unsigned)before, (int)handled);
    spin_ms(5);
    errno = 0;
    printf("bad %s %d %d %d %d\n", name_of(sigset(99, on_signal)), sighold(99), sigrelse(99), sigignore(99), errno);
}

// ---- handlers that block everything

static void spin_in_handler(int number)
{
    handled += number;
    spin_ms(100);
}

static void print_action(int number, int what)
{
    struct sigaction action;
    sigaction(number, NULL, &action);
    printf("%d masks it: %d\n", number, sigismember(&action.sa_mask, what));
}

static void masks(int number)
{
    struct sigaction action = {.sa_handler = spin_in_handler}, before;
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    print_action(SIGUSR1, number);
    raise(SIGUSR1);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        print_action(SIGUSR1, number);
        fflush(stdout);
        _exit(getenv("QUT_AGENT") ? 0 : !kernel_masks(SIGUSR1, number));
    }
    int status;
    waitpid(child, &status, 0);
    printf("child %x\n", (unsigned)status);
    sigdelset(&action.sa_mask, number);
    sigaction(SIGUSR1, &action, &before);
    printf("before %d\n", sigismember(&before.sa_mask, number));
    print_action(SIGUSR1, number);
    // In and out in one place.
    struct sigaction *volatile alias = &action;
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR2, &action, NULL);
    sigaction(SIGUSR2, &action, alias);
    printf("itself %d\n", sigismember(&action.sa_mask, number));
}

// ---- a timer of the program's that sends it

static void timer(int number)
{
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    signal(number, on_signal);
    setitimer(ITIMER_PROF, &often, NULL);
    for (int i = 0; i < 1000 && handled < 3 * number; i++)
        spin_ms(1);
    setitimer(ITIMER_PROF, &never, NULL);
    printf("came %d\n", handled >= 3 * number);
}

// ---- users

static void users(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0}};
    errno = 0;
    printf("groups %d\n", setgroups(0, NULL));
    // This thread only has nothing left.
    printf("capabilities %ld\n", syscall(SYS_capset, &head, none));
    printf("group %d", setresgid(65534, 65534, 65534));
    printf(" %d\n", errno);
    printf("user %d", setuid(65534));
    printf(" %d\n", errno);
    printf("groups %d", initgroups("nobody", 65534));
    printf(" %d\n", errno);
    printf("%d %d\n", (int)getuid(), (int)getgid());
}

// ---- small stacks

static void *allocate_much(void *argument)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    int fds[2];
    char byte = 1;
    for (int i = 0; i < 100; i++) {
        void *volatile memory = malloc(100);
        free(memory);
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    if (pipe(fds) != 0 || write(fds[1], &byte, 1) != 1 || read(fds[0], &byte, 1) != 1)
        return NULL;
    close(fds[0]);
    close(fds[1]);
    spin_ms(20);
    return argument;
}

static void small_stacks(void)
{
    enum { GUARD = 1 << 16 };
    size_t size = (size_t)sysconf(_SC_THREAD_STACK_MIN);
    char *pages = mmap(NULL, GUARD + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + GUARD, size, PROT_READ | PROT_WRITE);
    pthread_attr_t attributes;
    pthread_t thread;
    void *result;
    for (int i = 0; i < 2; i++) {
        pthread_attr_init(&attributes);
        printf("stack %d\n", i ? pthread_attr_setstacksize(&attributes, size)
                               : pthread_attr_setstack(&attributes, pages + GUARD, size));
        pthread_create(&thread, &attributes, allocate_much, &size);
        pthread_join(thread, &result);
        printf("done %d\n", result == &size);
    }
}

// ---- forks beside a thread that sets actions all the time

static volatile int is_over;

static void *set_actions(void *argument)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    while (!is_over)
        sigaction(*(int *)argument, &action, NULL);
    return NULL;
}

static void fork_storm(int number)
{
    pthread_t threads[3];
    int good = 0;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, set_actions, &number);
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(10);
            sigaction(number, NULL, &(struct sigaction){.sa_flags = 0});
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        int status;
        waitpid(child, &status, 0);
        good += status == 0;
    }
    is_over = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%d good\n", good);
}

// ---- handlers see the program's masks, whatever they interrupt

static int looked_for;
static volatile sig_atomic_t look_count, miss_count;

static void look_at_mask(int number)
{
    sigset_t set;
    int saved_errno = errno;
    (void)number;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    look_count = look_count + 1;
    miss_count = miss_count + (sigismember(&set, looked_for) != 1);
    errno = saved_errno;
}

static void interrupts(int number)
{
    sigset_t set;
    looked_for = number;
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGALRM, look_at_mask);
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 300 || look_count < 100; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        while (waitpid(child, NULL, 0) < 0) {
        }
        execl("/nonexistent", "", (char *)NULL);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("missed %d\n", (int)miss_count);
}

// ---- what is no point of cancellation stays none

static int steps_done;

static void *go_on_cancelled(void *argument)
{
    pthread_cancel(pthread_self());
    execl("/nonexistent", "", (char *)NULL);
    steps_done = 1;
    pid_t child = fork();
    if (child == 0)
        _exit(steps_done);
    steps_done = 2;
    sigaction(*(int *)argument, NULL, &(struct sigaction){.sa_flags = 0});
    free(malloc(100));
    steps_done = 3;
    pthread_testcancel();
    steps_done = 4;
    return NULL;
}

static void cancel(int number)
{
    pthread_t thread;
    void *result;
    int status;
    pthread_create(&thread, NULL, go_on_cancelled, &number);
    pthread_join(thread, &result);
    wait(&status);
    printf("%d steps, cancelled %d, child %x\n", steps_done, result == PTHREAD_CANCELED, (unsigned)status);
}

// ---- threads and libraries

static void *do_nothing(void *argument)
{
    return argument;
}

static void come_and_go(void)
{
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, do_nothing, NULL);
        pthread_join(thread, NULL);
        // Beside the one that calls.
        void *library = dlopen("$ORIGIN/libagent_plugin.so", RTLD_NOW);
        int (*answer)(void) = library ? (int (*)(void))dlsym(library, "agent_plugin") : NULL;
        printf("library %d\n", answer ? answer() : -1);
        printf("close %d\n", library ? dlclose(library) : -1);
    }
}

static void at_quick_end(void)
{
    puts("the quick end");
    fflush(stdout);
}

// ---- system calls that end the process

static int there[2], back[2];

static void *echo(void *unused)
{
    char byte;
    while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1) {
    }
    return unused;
}

static int forbid(void)
{
    static const int forbidden[] = {SYS_timer_create, SYS_timer_settime, SYS_timer_delete, SYS_perf_event_open};
    enum { COUNT = sizeof forbidden / sizeof *forbidden };
    struct sock_filter code[COUNT + 3];
    unsigned size = 0;
    code[size++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < COUNT; i++)
        code[size++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)forbidden[i],
                                                    (unsigned char)(COUNT - i), 0);
    code[size++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[size++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {.len = (unsigned short)size, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

// Waits often enough for its ticks to come by something else.
static void sandbox(void)
{
    pthread_t other;
    char byte = 0;
    if (pipe(there) || pipe(back) || pthread_create(&other, NULL, echo, NULL))
        return;
    spin_ms(20);
    printf("forbidden %d\n", forbid());
    fflush(stdout);
    for (double until = cpu_ms() + 150; cpu_ms() < until;)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            return;
    puts("played");
    fflush(stdout);
    _exit(0);
}

int main(int argument_count, char **arguments)
{
    int number = argument_count > 2 ? atoi(arguments[2]) : 0;
    const char *what = argument_count > 1 ? arguments[1] : "";
    if (strcmp(what, "old-signals") == 0) {
        old_signals(number);
    } else if (strcmp(what, "masks") == 0) {
        masks(number);
    } else if (strcmp(what, "timer") == 0) {
        timer(number);
    } else if (strcmp(what, "sandbox") == 0) {
        sandbox();
    } else if (strcmp(what, "users") == 0) {
        users();
    } else if (strcmp(what, "small-stacks") == 0) {
        small_stacks();
    } else if (strcmp(what, "fork-storm") == 0) {
        fork_storm(number);
    } else if (strcmp(what, "interrupts") == 0) {
        interrupts(number);
    } else if (strcmp(what, "cancel") == 0) {
        cancel(number);
    } else if (strcmp(what, "exec-fails") == 0) {
        printf("hold %d, ignore %d\n", sighold(number), sigignore(number));
        printf("exec %d\n", execl("/nonexistent", "", (char *)NULL));
        printf("still %s\n", name_of(signal(number, SIG_IGN)));
        spin_ms(50);
    } else if (strcmp(what, "come-and-go") == 0) {
        come_and_go();
    } else if (strcmp(what, "quick-exit") == 0) {
        at_quick_exit(at_quick_end);
        spin_ms(50);
        quick_exit(7);
    } else if (strcmp(what, "exit") == 0) {
        puts("the end");
        fflush(stdout);
        spin_ms(50);
        number ? _exit(7) : _Exit(7);
    }
    return 5;
}
