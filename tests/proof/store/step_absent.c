// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

int main(void)
{
    puts("SKIP: single-stepping is for x86-64, and not under an emulator");
    return 77;
}
