// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "tracer/upload/inside.h"

static const char *const names[UPLOAD_FORM_COUNT] = {"otlp", "pprof", "file"};

const char *upload_form_name(enum upload_form form)
{
    return names[form];
}

bool upload_form_named(const char *name, enum upload_form *form)
{
    for (unsigned i = 0; i < UPLOAD_FORM_COUNT; i++)
        if (strcmp(names[i], name) == 0) {
            *form = (enum upload_form)i;
            return true;
        }
    return false;
}

const char *upload_uuid(const char *id, char uuid[UPLOAD_UUID_CHARS])
{
    snprintf(uuid, UPLOAD_UUID_CHARS, "%.8s-%.4s-%.4s-%.4s-%.12s", id, id + 8, id + 12, id + 16, id + 20);
    return uuid;
}
