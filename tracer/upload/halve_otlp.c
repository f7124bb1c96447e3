// SPDX-License-Identifier: Apache-2.0
// Requests of OTLP: one dictionary for all profiles, in which entry 0 of each table stands for none.
#include "tracer/export/otlp/fields.h"
#include "tracer/upload/halve_form.h"

enum { SAMPLE_LINK = 3, ATTRIBUTE_UNIT = 3 };

static const struct halve_link line_links[] = {{LINE_FUNCTION, DICTIONARY_FUNCTIONS, NULL}, {0, 0, NULL}};
static const struct halve_link type_links[] = {
    {VALUE_TYPE_NAME, DICTIONARY_STRINGS, NULL}, {VALUE_TYPE_UNIT, DICTIONARY_STRINGS, NULL}, {0, 0, NULL}};
static const struct halve_link sample_links[] = {{SAMPLE_STACK, DICTIONARY_STACKS, NULL},
                                                 {SAMPLE_ATTRIBUTES, DICTIONARY_ATTRIBUTES, NULL},
                                                 {SAMPLE_LINK, DICTIONARY_LINKS, NULL},
                                                 {0, 0, NULL}};
static const struct halve_link profile_links[] = {{PROFILE_SAMPLE_TYPE, 0, type_links},
                                                  {PROFILE_SAMPLES, 0, sample_links},
                                                  {PROFILE_PERIOD_TYPE, 0, type_links},
                                                  {PROFILE_ATTRIBUTES, DICTIONARY_ATTRIBUTES, NULL},
                                                  {0, 0, NULL}};
static const struct halve_link mapping_links[] = {
    {MAPPING_FILE, DICTIONARY_STRINGS, NULL}, {MAPPING_ATTRIBUTES, DICTIONARY_ATTRIBUTES, NULL}, {0, 0, NULL}};
static const struct halve_link location_links[] = {{LOCATION_MAPPING, DICTIONARY_MAPPINGS, NULL},
                                                   {LOCATION_LINES, 0, line_links},
                                                   {LOCATION_ATTRIBUTES, DICTIONARY_ATTRIBUTES, NULL},
                                                   {0, 0, NULL}};
static const struct halve_link function_links[] = {{FUNCTION_NAME, DICTIONARY_STRINGS, NULL},
                                                   {FUNCTION_SYSTEM_NAME, DICTIONARY_STRINGS, NULL},
                                                   {FUNCTION_FILE, DICTIONARY_STRINGS, NULL},
                                                   {0, 0, NULL}};
static const struct halve_link attribute_links[] = {
    {ATTRIBUTE_KEY, DICTIONARY_STRINGS, NULL}, {ATTRIBUTE_UNIT, DICTIONARY_STRINGS, NULL}, {0, 0, NULL}};
static const struct halve_link stack_links[] = {{STACK_LOCATIONS, DICTIONARY_LOCATIONS, NULL}, {0, 0, NULL}};
static const struct halve_link no_links[] = {{0, 0, NULL}};

const struct halve_form halve_otlp = {
    .refusal = "it is no request of OTLP",
    .inner = {REQUEST_RESOURCE_PROFILES, RESOURCE_PROFILES_SCOPE_PROFILES, SCOPE_PROFILES_PROFILES, PROFILE_SAMPLES},
    .dictionary = REQUEST_DICTIONARY,
    .profile_id = PROFILE_ID,
    .profile_links = profile_links,
    .tables = {{DICTIONARY_STACKS, false, stack_links},
               {DICTIONARY_LOCATIONS, false, location_links},
               {DICTIONARY_FUNCTIONS, false, function_links},
               {DICTIONARY_MAPPINGS, false, mapping_links},
               {DICTIONARY_LINKS, false, no_links},
               {DICTIONARY_ATTRIBUTES, false, attribute_links},
               {DICTIONARY_STRINGS, false, no_links}},
};
