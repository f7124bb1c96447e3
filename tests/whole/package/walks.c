// SPDX-License-Identifier: Apache-2.0
// Links libqut alone: there are no tables, so the frame that calls is all that must be seen.
#include "program.h"

int main(void)
{
    return run(NULL, 1);
}
