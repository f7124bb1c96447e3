// SPDX-License-Identifier: Apache-2.0
// Field numbers of push.v1.PushRequest, as Pyroscope has it.
#ifndef TRACER_UPLOAD_PUSH_FIELDS_H
#define TRACER_UPLOAD_PUSH_FIELDS_H

enum push_field {
    PUSH_SERIES = 1,

    SERIES_LABELS = 1,
    SERIES_SAMPLES = 2,
    SERIES_LABEL_NAME = 1,
    SERIES_LABEL_VALUE = 2,

    RAW_PROFILE = 1,
    RAW_ID = 2,
};

#endif
