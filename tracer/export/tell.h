// SPDX-License-Identifier: Apache-2.0
// Lines of text for whoever shows them.
#ifndef TRACER_EXPORT_TELL_H
#define TRACER_EXPORT_TELL_H

struct teller {
    void (*say)(void *context, const char *text);
    void *context;
};

// Cut off behind 1,023 bytes.
__attribute__((format(printf, 2, 3))) void export_tell(const struct teller *teller, const char *format, ...);

#endif
