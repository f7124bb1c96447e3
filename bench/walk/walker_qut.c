// SPDX-License-Identifier: Apache-2.0
// libqut, by tier.
#include "bench/walk/tables.h"
#include "bench/walk/walkers.h"
#include "libqut/runtime/tiers.h"

#include <qut/local.h>

const char *bench_cache_directory;

static bool started;

bool bench_qut_started(void)
{
    return started;
}

static const char *open_qut(void)
{
    if (started)
        return NULL;
    struct qut_options options = {.size = sizeof options, .cache_directory = bench_cache_directory};
    bench_tables_compiler(&options);
    if (qut_start(&options) != 0)
        return "qut_start failed";
    if (qut_wait(60000) != 0)
        return "tables are not there after a minute";
    started = true;
    bench_walkers_thread();
    return NULL;
}

static void table_only(void)
{
    atomic_store_explicit(&runtime_tiers, 0, memory_order_relaxed);
}

static void linked(void)
{
    atomic_store_explicit(&runtime_tiers, RUNTIME_TIER_LINKED, memory_order_relaxed);
}

static void all_tiers(void)
{
    atomic_store_explicit(&runtime_tiers, RUNTIME_TIERS_ALL, memory_order_relaxed);
}

static size_t walk_qut(uintptr_t *pcs, size_t max)
{
    return qut_backtrace(pcs, max, NULL);
}

const struct bench_walker bench_walker_qut_table = {
    .name = "qut-table", .walk = walk_qut, .open = open_qut, .choose = table_only};
const struct bench_walker bench_walker_qut_linked = {
    .name = "qut-linked", .walk = walk_qut, .open = open_qut, .choose = linked};
const struct bench_walker bench_walker_qut = {.name = "qut", .walk = walk_qut, .open = open_qut, .choose = all_tiers};
