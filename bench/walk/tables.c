// SPDX-License-Identifier: Apache-2.0
#include "bench/walk/tables.h"

#include <qutc/provide.h>

void bench_tables_compiler(struct qut_options *options)
{
    static struct qutc_provide_options provide;
    provide = (struct qutc_provide_options){.size = sizeof provide, .cache_directory = options->cache_directory};
    options->compile = qutc_compile_for_qut;
    options->compile_context = &provide;
}
