// SPDX-License-Identifier: Apache-2.0
#include "bench/walk/tables.h"

void bench_tables_compiler(struct qut_options *options)
{
    (void)options;
}
