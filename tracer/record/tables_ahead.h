// SPDX-License-Identifier: Apache-2.0
// What a process will ask for next: an agent asks for one table after the other, and its program waits for all of them.
#ifndef TRACER_RECORD_TABLES_AHEAD_H
#define TRACER_RECORD_TABLES_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/qut_agent.h"

// The files that the process has mapped to run and that the cache has no table for, as its agent would ask; the largest
// first, since the last one to be made is waited for. *asked is allocated. Returns how many; 0 too where it cannot be
// told.
size_t record_tables_ahead(uint32_t pid, const char *cache_directory, struct agent_channel_table **asked);
// Likewise of one file, by its build-id. False: the cache has a table.
bool record_table_is_missing(const char *cache_directory, const char *arch_name, const uint8_t *build_id,
                             uint32_t build_id_bytes);

#endif
