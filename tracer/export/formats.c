// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "tracer/export/export.h"

const struct export_format export_parquet = {
    .name = "parquet",
    .extension = ".parquet",
    .what = "OUT is a folder of tables for SQL engines (DuckDB, ClickHouse and others): docs/qut-query.md",
    .is_timeline = true,
    .is_binary = true,
    .is_folder = true,
    .has_labels = true,
};

const struct export_format *const export_formats[] = {
    &export_perfetto,
    &export_speedscope,
    &export_pprof,
    &export_collapsed,
    &export_nanoscope,
    &export_chrome,
    &export_perf_script,
    &export_firefox,
    &export_callgrind,
    &export_replay,
    &export_otlp,
    &export_parquet,
    NULL,
};

const struct export_format *export_find(const char *name)
{
    for (unsigned i = 0; export_formats[i]; i++)
        if (strcmp(export_formats[i]->name, name) == 0)
            return export_formats[i];
    return NULL;
}
