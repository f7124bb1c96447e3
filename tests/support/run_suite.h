// SPDX-License-Identifier: Apache-2.0
// How every program of Check tests ends.
#ifndef TESTS_SUPPORT_RUN_SUITE_H
#define TESTS_SUPPORT_RUN_SUITE_H

#include <check.h>
#include <stdlib.h>

// Runs the tests and frees them. What main returns. CK_VERBOSITY says how much is printed.
static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
