// SPDX-License-Identifier: Apache-2.0
#include "base/late.h"

#include <dlfcn.h>
#include <string.h>

int base_late_load(const char *what, const char *library, const struct base_late_function *functions, size_t count,
                   void *pointers, struct base_error *error)
{
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!loaded)
        return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "%s cannot be loaded: %s", what, dlerror());
    for (size_t i = 0; i < count; i++) {
        void *function = dlsym(loaded, functions[i].name);
        if (!function)
            return base_fail(error, BASE_ERR_UNSUPPORTED, "", 0, "%s has no %s", library, functions[i].name);
        // ISO C knows no way from void * to a function but through memory.
        memcpy((char *)pointers + functions[i].offset, &function, sizeof function);
    }
    return 0;
}
