// SPDX-License-Identifier: Apache-2.0
#include "libqut/functions/text.h"

#include <string.h>

void functions_text(const char *name, const char *file, char *text, size_t text_size)
{
    size_t name_bytes = strnlen(name, text_size / 2), file_bytes = strlen(file), most = text_size - name_bytes - 2;
    if (file_bytes > most) {
        const char *slash = strrchr(file, '/');
        file = slash && strlen(slash + 1) <= most ? slash + 1 : "";
        file_bytes = strlen(file);
    }
    memcpy(text, name, name_bytes);
    text[name_bytes] = '\n';
    memcpy(text + name_bytes + 1, file, file_bytes + 1);
    for (size_t i = 0; i < name_bytes; i++)
        if (text[i] == '\n')
            text[i] = ' ';
}
