// SPDX-License-Identifier: Apache-2.0
// Requests of Pyroscope's push API: one profile.proto, whose tables are its own. Mappings, locations and functions are
// called by ids, and not all numbers are given; strings by their places.
#include "tracer/export/pprof/fields.h"
#include "tracer/upload/halve_form.h"
#include "tracer/upload/push_fields.h"

static const struct halve_link type_links[] = {
    {TYPE_NAME, PROFILE_STRING, NULL}, {TYPE_UNIT, PROFILE_STRING, NULL}, {0, 0, NULL}};
static const struct halve_link label_links[] = {
    {LABEL_KEY, PROFILE_STRING, NULL}, {LABEL_TEXT, PROFILE_STRING, NULL}, {0, 0, NULL}};
static const struct halve_link sample_links[] = {
    {SAMPLE_LOCATIONS, PROFILE_LOCATION, NULL}, {SAMPLE_LABEL, 0, label_links}, {0, 0, NULL}};
static const struct halve_link profile_links[] = {
    {PROFILE_SAMPLE_TYPE, 0, type_links},         {PROFILE_SAMPLE, 0, sample_links},
    {PROFILE_PERIOD_TYPE, 0, type_links},         {PROFILE_COMMENT, PROFILE_STRING, NULL},
    {PROFILE_DEFAULT_TYPE, PROFILE_STRING, NULL}, {0, 0, NULL}};
static const struct halve_link line_links[] = {{LINE_FUNCTION, PROFILE_FUNCTION, NULL}, {0, 0, NULL}};
static const struct halve_link location_links[] = {
    {LOCATION_MAPPING, PROFILE_MAPPING, NULL}, {LOCATION_LINE, 0, line_links}, {0, 0, NULL}};
static const struct halve_link function_links[] = {{FUNCTION_NAME, PROFILE_STRING, NULL},
                                                   {FUNCTION_SYSTEM_NAME, PROFILE_STRING, NULL},
                                                   {FUNCTION_FILE, PROFILE_STRING, NULL},
                                                   {0, 0, NULL}};
static const struct halve_link mapping_links[] = {
    {MAPPING_FILE, PROFILE_STRING, NULL}, {MAPPING_BUILD_ID, PROFILE_STRING, NULL}, {0, 0, NULL}};
static const struct halve_link no_links[] = {{0, 0, NULL}};

const struct halve_form halve_push = {
    .refusal = "it is no request of the push API",
    .inner = {PUSH_SERIES, SERIES_SAMPLES, RAW_PROFILE, PROFILE_SAMPLE},
    .holder_id = RAW_ID,
    .profile_links = profile_links,
    .tables = {{PROFILE_LOCATION, true, location_links},
               {PROFILE_FUNCTION, true, function_links},
               {PROFILE_MAPPING, true, mapping_links},
               {PROFILE_STRING, false, no_links}},
};
