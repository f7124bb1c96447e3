// SPDX-License-Identifier: Apache-2.0
// late LIBRARY [SIGNAL...]: handles these signals, and burns; from SIGUSR1 on in a library that it loads then.
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

static volatile sig_atomic_t is_asked;
static volatile double sum;

static void note(int number)
{
    is_asked = number == SIGUSR1 || is_asked;
}

__attribute__((noinline)) static void burn(void)
{
    for (int i = 0; i < 100000; i++)
        sum += i;
}

int main(int argc, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGUSR1, note);
    for (int i = 2; i < argc; i++)
        signal(atoi(argv[i]), note);
    while (!is_asked)
        burn();
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    void (*late_burn)(volatile double *) = NULL;
    if (library)
        *(void **)&late_burn = dlsym(library, "late_burn");
    while (late_burn)
        late_burn(&sum);
    return 1;
}
