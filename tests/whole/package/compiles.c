// SPDX-License-Identifier: Apache-2.0
// Links libqut and libqutc: inner, run or main, and libc's start must be seen, up to the real end.
#include <qutc/provide.h>

#include "program.h"

int main(void)
{
    return run(qutc_compile_for_qut, 3) || end.reason != QUT_END_OUTERMOST;
}
