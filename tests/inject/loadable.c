// SPDX-License-Identifier: Apache-2.0
// Something to load that says that it was there.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int qut_agent_inject(const char *settings);
int qut_agent_eject(void);

static __thread int counter __attribute__((tls_model("initial-exec")));

// Settings: "fail" or a descriptor's number to write a byte to; "" does nothing.
__attribute__((visibility("default"))) int qut_agent_inject(const char *settings)
{
    void *memory = malloc(100);
    free(memory);
    counter++;
    if (strcmp(settings, "fail") == 0)
        return -11;
    return *settings && write(atoi(settings), "i", 1) != 1 ? -5 : 0;
}

__attribute__((visibility("default"))) int qut_agent_eject(void)
{
    return counter > 0 ? -22 : 0; // every thread has its own
}
