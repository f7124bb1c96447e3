// SPDX-License-Identifier: Apache-2.0
#include "tracer/export/tell.h"

#include <stdarg.h>
#include <stdio.h>

void export_tell(const struct teller *teller, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    teller->say(teller->context, text);
}
