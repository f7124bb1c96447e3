// SPDX-License-Identifier: Apache-2.0
int agent_plugin(void);

int agent_plugin(void)
{
    return 42;
}
