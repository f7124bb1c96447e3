// SPDX-License-Identifier: Apache-2.0
// Is loaded by subject.c when it already runs.
#include "tests/proof/trace_calls/account.h"

static struct account account_plugin = {.name = "traced_plugin"}, account_inside = {.name = "traced_inside"};
static const struct account *const accounts[] = {&account_plugin, &account_inside, 0};

static TRACED uint64_t traced_inside(uint64_t x)
{
    ENTER(inside);
    uint64_t result = x ^ 5;
    LEAVE(inside);
    return result;
}

TRACED uint64_t traced_plugin(uint64_t x);
uint64_t traced_plugin(uint64_t x)
{
    ENTER(plugin);
    uint64_t result = traced_inside(x) + traced_inside(x + 1);
    LEAVE(plugin);
    return result;
}

uint64_t plugin_run(unsigned rounds);
uint64_t plugin_run(unsigned rounds)
{
    uint64_t result = 0;
    for (unsigned i = 0; i < rounds; i++)
        result += traced_plugin(i);
    return result;
}

void plugin_write_account(void);
void plugin_write_account(void)
{
    account_write("plugin", accounts, 0);
    account_plugin = (struct account){.name = "traced_plugin"};
    account_inside = (struct account){.name = "traced_inside"};
}
