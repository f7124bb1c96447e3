// SPDX-License-Identifier: Apache-2.0
// A signal that waits, and calls with a mask of their own that lets it through: says how often its handler had not run
// when such a call came back.
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

static volatile sig_atomic_t handled;

static void on_signal(int number)
{
    handled = number;
}

static long cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int wait_by(int how, int epoll_fd, const sigset_t *mask)
{
    struct epoll_event event;
    switch (how) {
    case 0: return sigsuspend(mask);
    case 1: return ppoll(NULL, 0, NULL, mask);
    case 2: return pselect(0, NULL, NULL, NULL, NULL, mask);
    default: return epoll_pwait(epoll_fd, &event, 1, -1, mask);
    }
}

int main(void)
{
    enum { WAYS = 4, ROUNDS = 100, EACH_MS = 400 };
    sigset_t one, none;
    struct sigaction action = {.sa_handler = on_signal};
    int epoll_fd = epoll_create1(0);
    sigemptyset(&none);
    sigemptyset(&one);
    sigaddset(&one, SIGURG); // behind those that ticks may be
    sigaction(SIGURG, &action, NULL);
    sigprocmask(SIG_BLOCK, &one, NULL);
    for (int how = 0; how < WAYS; how++) {
        int missed = 0, came_back = 0;
        for (long until = cpu_ms() + EACH_MS; cpu_ms() < until;)
            for (int i = 0; i < ROUNDS; i++) {
                handled = 0;
                raise(SIGURG);
                came_back += wait_by(how, epoll_fd, &none) != -1;
                missed += handled != SIGURG;
            }
        printf("way %d: missed %d, otherwise %d\n", how, missed, came_back);
    }
    return 0;
}
