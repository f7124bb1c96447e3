// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <qut/qut.h>
#include <qutc/provide.h>

#include "bench/store/parts.h"

int store_begin(void)
{
    static bool begun;
    struct qut_options options = {.size = sizeof options, .compile = qutc_compile_for_qut};
    int error = begun ? 0 : qut_start(&options);
    if (error == 0)
        error = qut_wait(60000);
    if (error != 0) {
        fprintf(stderr, "bench_store: qut_start: %s\n", strerror(-error));
        return -1;
    }
    begun = true;
    return 0;
}

int store_open(uint64_t segment_bytes)
{
    struct qut_trace_options options = {.size = sizeof options,
                                        .segment_bytes = segment_bytes,
                                        .flags = QUT_TRACE_CPU_TIME,
                                        .metric_mask = 0xf,
                                        .merge_gap_ns = UINT64_MAX};
    int error = qut_trace_open(&options);
    if (error != 0)
        fprintf(stderr, "bench_store: qut_trace_open: %s\n", strerror(-error));
    return error != 0 ? -1 : 0;
}
