// SPDX-License-Identifier: Apache-2.0
// Calls of other modules' functions: of some the address is known at start, the others are found at the first call.
#include <stdlib.h>
#include <string.h>

void *names_addresses(int which);
void *names_addresses(int which)
{
    return which == 0 ? (void *)strlen : which == 1 ? (void *)strcmp : which == 2 ? (void *)labs : (void *)atoi;
}

long names_calls(const char *one, const char *other);
long names_calls(const char *one, const char *other)
{
    char *end;
    return (long)strlen(one) + strcmp(one, other) + atoi(one) + strtol(other, &end, 0) + (long)strspn(one, other) +
           (long)(size_t)getenv(one);
}
