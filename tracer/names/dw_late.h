// SPDX-License-Identifier: Apache-2.0
// libdw and libelf, loaded when debug information is first read: what only records has no use for them.
#ifndef TRACER_NAMES_DW_LATE_H
#define TRACER_NAMES_DW_LATE_H

#include <elfutils/libdw.h>
#include <stdbool.h>

// Their functions: libdw's without the dwarf_ of their names.
struct names_dw {
    __typeof__(elf_begin) *elf_begin;
    __typeof__(elf_end) *elf_end;
    __typeof__(elf_memory) *elf_memory;
    __typeof__(elf_version) *elf_version;
    __typeof__(dwarf_attr) *attr;
    __typeof__(dwarf_attr_integrate) *attr_integrate;
    __typeof__(dwarf_begin_elf) *begin_elf;
    __typeof__(dwarf_child) *child;
    __typeof__(dwarf_cu_getdwarf) *cu_getdwarf;
    __typeof__(dwarf_cu_info) *cu_info;
    __typeof__(dwarf_cuoffset) *cuoffset;
    __typeof__(dwarf_diecu) *diecu;
    __typeof__(dwarf_diename) *diename;
    __typeof__(dwarf_dieoffset) *dieoffset;
    __typeof__(dwarf_end) *end;
    __typeof__(dwarf_entrypc) *entrypc;
    __typeof__(dwarf_filesrc) *filesrc;
    __typeof__(dwarf_formref_die) *formref_die;
    __typeof__(dwarf_formstring) *formstring;
    __typeof__(dwarf_formudata) *formudata;
    __typeof__(dwarf_get_units) *get_units;
    __typeof__(dwarf_getlocation_addr) *getlocation_addr;
    __typeof__(dwarf_getsrc_die) *getsrc_die;
    __typeof__(dwarf_getsrcfiles) *getsrcfiles;
    __typeof__(dwarf_getsrclines) *getsrclines;
    __typeof__(dwarf_hasattr) *hasattr;
    __typeof__(dwarf_lineaddr) *lineaddr;
    __typeof__(dwarf_linebeginstatement) *linebeginstatement;
    __typeof__(dwarf_lineendsequence) *lineendsequence;
    __typeof__(dwarf_lineno) *lineno;
    __typeof__(dwarf_linesrc) *linesrc;
    __typeof__(dwarf_next_unit) *next_unit;
    __typeof__(dwarf_offdie) *offdie;
    __typeof__(dwarf_onesrcline) *onesrcline;
    __typeof__(dwarf_ranges) *ranges;
    __typeof__(dwarf_siblingof) *siblingof;
    __typeof__(dwarf_srclang) *srclang;
    __typeof__(dwarf_tag) *tag;
};
extern struct names_dw names_dw;

// False: they are not installed. Before the first of these functions is called. [blocking; allocating; any thread]
bool names_dw_load(void);

#endif
