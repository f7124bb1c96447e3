// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "tests/unit/qutc/cfi/exidx/suites.h"

int main(void)
{
    SRunner *runner = srunner_create(opcodes_suite());
    srunner_add_suite(runner, index_suite());
#ifdef HAVE_READELF
    srunner_add_suite(runner, judge_suite());
#endif
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
