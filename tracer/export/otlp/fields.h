// SPDX-License-Identifier: Apache-2.0
// Field numbers of opentelemetry-proto 1.11, opentelemetry.proto.profiles.v1development. They moved between 1.7
// and 1.10: whoever reads another one reads nonsense, and there is nothing in a message that tells.
#ifndef TRACER_EXPORT_OTLP_FIELDS_H
#define TRACER_EXPORT_OTLP_FIELDS_H

enum otlp_field {
    // ExportProfilesServiceRequest
    REQUEST_RESOURCE_PROFILES = 1,
    REQUEST_DICTIONARY = 2,

    RESOURCE_PROFILES_RESOURCE = 1,
    RESOURCE_PROFILES_SCOPE_PROFILES = 2,
    RESOURCE_ATTRIBUTES = 1,
    SCOPE_PROFILES_SCOPE = 1,
    SCOPE_PROFILES_PROFILES = 2,
    SCOPE_NAME = 1,
    SCOPE_VERSION = 2,

    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLES = 2,
    PROFILE_TIME_UNIX_NS = 3,
    PROFILE_DURATION_NS = 4,
    PROFILE_PERIOD_TYPE = 5,
    PROFILE_PERIOD = 6,
    PROFILE_ID = 7,
    PROFILE_ATTRIBUTES = 11,
    VALUE_TYPE_NAME = 1,
    VALUE_TYPE_UNIT = 2,

    SAMPLE_STACK = 1,
    SAMPLE_ATTRIBUTES = 2,
    SAMPLE_VALUES = 4,

    // ProfilesDictionary: entry 0 of each table is the one that stands for none.
    DICTIONARY_MAPPINGS = 1,
    DICTIONARY_LOCATIONS = 2,
    DICTIONARY_FUNCTIONS = 3,
    DICTIONARY_LINKS = 4,
    DICTIONARY_STRINGS = 5,
    DICTIONARY_ATTRIBUTES = 6,
    DICTIONARY_STACKS = 7,

    MAPPING_START = 1,
    MAPPING_LIMIT = 2,
    MAPPING_FILE_OFFSET = 3,
    MAPPING_FILE = 4,
    MAPPING_ATTRIBUTES = 5,

    LOCATION_MAPPING = 1,
    LOCATION_ADDRESS = 2,
    LOCATION_LINES = 3,
    LOCATION_ATTRIBUTES = 4,
    LINE_FUNCTION = 1,
    LINE_NUMBER = 2,

    FUNCTION_NAME = 1,
    FUNCTION_SYSTEM_NAME = 2,
    FUNCTION_FILE = 3,

    LINK_TRACE_ID = 1,
    LINK_SPAN_ID = 2,

    STACK_LOCATIONS = 1,

    // KeyValueAndUnit; KeyValue of a resource has the key's text in the place of its number.
    ATTRIBUTE_KEY = 1,
    ATTRIBUTE_VALUE = 2,
    ANY_TEXT = 1,
    ANY_NUMBER = 3,
};

#endif
