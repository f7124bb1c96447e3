// SPDX-License-Identifier: Apache-2.0
#include "tracer/names/dw_late.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#include "base/late.h"

struct names_dw names_dw;

#define ELF(NAME)                                                                                                      \
    {                                                                                                                  \
        "elf_" #NAME, offsetof(struct names_dw, elf_##NAME)                                                            \
    }
#define DWARF(NAME)                                                                                                    \
    {                                                                                                                  \
        "dwarf_" #NAME, offsetof(struct names_dw, NAME)                                                                \
    }
static const struct base_late_function of_libelf[] = {ELF(begin), ELF(end), ELF(memory), ELF(version)};
static const struct base_late_function of_libdw[] = {DWARF(attr),
                                                     DWARF(attr_integrate),
                                                     DWARF(begin_elf),
                                                     DWARF(child),
                                                     DWARF(cu_getdwarf),
                                                     DWARF(cu_info),
                                                     DWARF(cuoffset),
                                                     DWARF(diecu),
                                                     DWARF(diename),
                                                     DWARF(dieoffset),
                                                     DWARF(end),
                                                     DWARF(entrypc),
                                                     DWARF(filesrc),
                                                     DWARF(formref_die),
                                                     DWARF(formstring),
                                                     DWARF(formudata),
                                                     DWARF(get_units),
                                                     DWARF(getlocation_addr),
                                                     DWARF(getsrc_die),
                                                     DWARF(getsrcfiles),
                                                     DWARF(getsrclines),
                                                     DWARF(hasattr),
                                                     DWARF(lineaddr),
                                                     DWARF(linebeginstatement),
                                                     DWARF(lineendsequence),
                                                     DWARF(lineno),
                                                     DWARF(linesrc),
                                                     DWARF(next_unit),
                                                     DWARF(offdie),
                                                     DWARF(onesrcline),
                                                     DWARF(ranges),
                                                     DWARF(siblingof),
                                                     DWARF(srclang),
                                                     DWARF(tag)};
#undef ELF
#undef DWARF
enum { OF_LIBELF = sizeof of_libelf / sizeof *of_libelf, OF_LIBDW = sizeof of_libdw / sizeof *of_libdw };
static_assert((OF_LIBELF + OF_LIBDW) * sizeof(void *) == sizeof(struct names_dw), "each is looked up");

static bool is_there;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
    is_there = base_late_load("libelf", "libelf.so.1", of_libelf, OF_LIBELF, &names_dw, NULL) == 0 &&
               base_late_load("libdw", "libdw.so.1", of_libdw, OF_LIBDW, &names_dw, NULL) == 0;
}

bool names_dw_load(void)
{
    pthread_once(&once, load);
    return is_there;
}
