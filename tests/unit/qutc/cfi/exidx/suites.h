// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_UNIT_QUTC_CFI_EXIDX_SUITES_H
#define TESTS_UNIT_QUTC_CFI_EXIDX_SUITES_H

#include <check.h>

Suite *opcodes_suite(void);
Suite *index_suite(void);
Suite *judge_suite(void);

#endif
