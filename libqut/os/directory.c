// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <errno.h>

#include "libqut/os/file.h"

int os_each_name(const char *directory, int (*each)(void *context, const char *name), void *context)
{
    DIR *dir = opendir(directory);
    if (!dir)
        return -errno;
    int result = 0;
    for (struct dirent *entry; result == 0 && (entry = readdir(dir));)
        result = each(context, entry->d_name);
    closedir(dir);
    return result;
}
