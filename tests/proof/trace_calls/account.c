// SPDX-License-Identifier: Apache-2.0
#include "tests/proof/trace_calls/account.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void account_write(const char *which, const struct account *const *accounts, uint64_t result)
{
    const char *path = getenv("TRACE_ACCOUNT");
    FILE *file = path ? fopen(path, "ae") : stdout;
    if (!file)
        abort();
    fprintf(file, "{\"pid\": %d, \"case\": \"%s\", \"result\": %llu, \"functions\": {", (int)getpid(), which,
            (unsigned long long)result);
    const char *comma = "";
    for (; *accounts; accounts++) {
        const struct account *account = *accounts;
        if (!account->entered)
            continue;
        fprintf(file,
                "%s\"%s\": {\"entered\": %llu, \"returned\": %llu, \"tail\": %llu, \"unwound\": %llu, \"open\": %llu}",
                comma, account->name, (unsigned long long)account->entered, (unsigned long long)account->returned,
                (unsigned long long)account->tail, (unsigned long long)account->unwound,
                (unsigned long long)account->open);
        comma = ", ";
    }
    fputs("}}\n", file);
    if (path ? fclose(file) != 0 : fflush(file) != 0)
        abort();
}

// What the file has there: a module's first segment lies at offset 0 in those that linkers make.
static bool read_original(const void *function, uint8_t *bytes, size_t size)
{
    Dl_info info;
    if (!dladdr(function, &info) || !info.dli_fname)
        return false;
    const char *path = access(info.dli_fname, R_OK) == 0 ? info.dli_fname : "/proc/self/exe";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const off_t offset = (off_t)((uintptr_t)function - (uintptr_t)info.dli_fbase);
    bool is_read = pread(fd, bytes, size, offset) == (ssize_t)size;
    close(fd);
    return is_read;
}

bool account_is_restored(const void *function)
{
    uint8_t original[8];
    return read_original(function, original, sizeof original) && memcmp(function, original, sizeof original) == 0;
}

bool account_wait_longer(const void *function, unsigned seconds)
{
    uint8_t original[8];
    const struct timespec nap = {.tv_nsec = 2000000};
    if (!read_original(function, original, sizeof original))
        return false;
    for (unsigned i = 0; i < seconds * 500; i++) {
        // The compiler is not to know that code does not change.
        const volatile uint8_t *now = function;
        for (size_t at = 0; at < sizeof original; at++)
            if (now[at] != original[at])
                return true;
        nanosleep(&nap, NULL);
    }
    return false;
}

bool account_wait_for_patch(const void *function)
{
    const char *told = getenv("TRACE_WAIT");
    return told && *told == '1' ? account_wait_longer(function, 30) : true;
}

void account_wait_for_exchange(const volatile uintptr_t *slot)
{
    const uintptr_t before = *slot;
    for (unsigned naps = 0; getenv("TRACE_WAIT") && *slot == before && naps < 30 * 500; naps++)
        usleep(2000);
}

void account_linger(void)
{
    const char *over = getenv("TRACE_OVER");
    for (unsigned naps = 0; over && naps < 60 * 100 && access(over, F_OK) != 0; naps++)
        usleep(10000);
}
