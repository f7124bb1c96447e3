// SPDX-License-Identifier: Apache-2.0
// A library whose file is gone as soon as it is loaded: what asks for its table finds it nowhere.
#include <stdlib.h>
#include <unistd.h>

int gone_library(int n);

__attribute__((constructor)) static void go(void)
{
    const char *own = getenv("GONE_LIBRARY");
    if (own && unlink(own) != 0)
        abort();
}

int gone_library(int n)
{
    return n + 1;
}
