// SPDX-License-Identifier: Apache-2.0
// Something to load that says that it was there.
#include <stdlib.h>
#include <string.h>

int qut_agent_inject(const char *settings);
int qut_agent_eject(void);

static __thread int counter __attribute__((tls_model("initial-exec")));

// Settings: "fail", or nothing; behind it a ';' and what an agent would be told.
__attribute__((visibility("default"))) int qut_agent_inject(const char *settings)
{
    void *memory = malloc(100);
    free(memory);
    counter++;
    return strncmp(settings, "fail", 4) == 0 ? -11 : 0;
}

__attribute__((visibility("default"))) int qut_agent_eject(void)
{
    return counter > 0 ? -22 : 0; // every thread has its own
}
