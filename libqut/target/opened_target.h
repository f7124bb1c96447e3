// SPDX-License-Identifier: Apache-2.0
// What the kinds of targets have in common, and what each does in its own way.
#ifndef QUT_TARGET_OPENED_TARGET_H
#define QUT_TARGET_OPENED_TARGET_H

#include <qut/target.h>

#include "libqut/arch/arch.h"
#include "libqut/art/traced.h"
#include "libqut/elf/image_memory.h"
#include "libqut/go/go.h"
#include "libqut/runtime/walk.h"
#include "libqut/target/mappings.h"
#include "libqut/target/target_image.h"

enum { TARGET_SLEEP_TEXT_BYTES = 256 };

// What a thread's registers are worth.
enum target_registers_state {
    TARGET_REGISTERS_UNREAD = 0, // stopped by us, not asked yet
    TARGET_REGISTERS_READ,
    TARGET_REGISTERS_ASLEEP, // not stopped: sp and pc, as long as it sleeps
    TARGET_REGISTERS_NONE,
};

struct qut_target_thread {
    struct qut_thread_info info;
    enum target_registers_state state;
    struct arch_frame_regs regs;
    uint64_t thread_pointer; // with TARGET_REGISTERS_READ; 0: not known
    uint64_t art_thread;     // the same
    int pending_signal;      // of a live thread: has arrived, and is delivered when it goes on
    bool traced, stopped;
    bool keeps_result; // of its system call, as the kernel makes it: by options, or it was stopped before
    bool is_newborn;   // or sleeps in the call that makes threads, as the one that calls it may, too
    char asleep[TARGET_SLEEP_TEXT_BYTES]; // with TARGET_REGISTERS_ASLEEP: the system call it sleeps in, as /proc words
                                          // it
};

// A piece of memory that was read once for all of a walk.
struct target_window {
    uint64_t start;
    size_t size; // 0: empty
    uint8_t *bytes;
};
enum { TARGET_STACK_WINDOWS = 2, TARGET_STACK_WINDOW_BYTES = 16384, TARGET_CODE_WINDOW_BYTES = 512 };

// Executable memory, in ascending order.
struct target_code_range {
    uint64_t start, end;
    struct target_image *image; // never NULL
};

// A word that a walk of a thread that is not stopped rests on.
struct target_read_note {
    uint64_t address, value;
};
enum { TARGET_READ_NOTES_MAX = 8192 };

// The stack of a thread that goes on: copied while it stood still, walked afterwards.
enum { TARGET_COPY_PIECES = 4 };
struct target_copy {
    // A thread's stack, one that a signal frame led to, those that a Go program changes to, or the first two's shadows.
    struct target_window pieces[TARGET_COPY_PIECES];
    struct go_thread go;                  // what its records said then
    const struct art_return *art_returns; // what method tracing kept for it then
    size_t art_return_count;
    uint64_t reached; // set by the walk: behind the outermost word of piece 0 that it read
};

// What a walk knows of the Go program that it goes through.
struct target_go {
    uint64_t thread_pointer; // of the thread that is walked; 0: not known
    const struct qut_target_thread *sleeper; // that thread, if it is not stopped; else NULL
    bool is_read;            // `walk` is filled, with what could be had
    struct go_walk walk;
};

struct qut_target;
struct target_machine;
struct target_code_map;
struct target_jit_dump;

// A process that writes down what the code is called that it makes.
struct target_code_source {
    pid_t tid;      // of a thread whose /proc entry shows its files
    long inner_pid; // as it knows itself, in the innermost namespace of pids
    uint32_t user_id;
};
struct target_python;
struct script_machine;

struct target_kind {
    // Memory as it is in the target; files do not count. Returns how many bytes from the start on.
    size_t (*read)(struct qut_target *target, uint64_t address, void *bytes, size_t size);
    // Several pieces of it. NULL: one by one.
    void (*read_pieces)(struct qut_target *target, struct elf_art_piece *pieces, size_t count);
    // The n-th file that could be what is mapped, as a path of PATH_MAX bytes. False: there are no more.
    bool (*file)(struct qut_target *target, const struct target_map *map, unsigned n, char *path);
    // Fills thread->regs. False: it has gone. NULL: they were read when the target was opened.
    bool (*registers)(struct qut_target *target, struct qut_target_thread *thread);
    // Fills thread->info.name; NULL: it was filled when the thread was made.
    void (*name_thread)(struct qut_target *target, struct qut_target_thread *thread);
    // Makes the list of threads anew. NULL: it never changes.
    void (*list_threads)(struct qut_target *target);
    // Whether the thread still sleeps where it did when its registers were taken. With TARGET_REGISTERS_ASLEEP only.
    bool (*still_asleep)(struct qut_target *target, struct qut_target_thread *thread);
    // Takes a thread that was not stopped yet; another try at one with TARGET_REGISTERS_ASLEEP that has woken, or that
    // sleeps where it could not be asked to stop. Asleep, or stopped. False: neither. NULL: threads do not move.
    bool (*retake)(struct qut_target *target, struct qut_target_thread *thread);
    void (*resume_thread)(struct qut_target *target, struct qut_target_thread *thread);
    int (*stop)(struct qut_target *target, struct qut_target_error *error); // NULL: nothing moves
    // Where to look for files that name made code, and whose they have to be. False: it is not known. NULL: nowhere.
    bool (*code_source)(struct qut_target *target, struct target_code_source *source);
    // What the process itself calls the thread. NULL: what we do.
    pid_t (*inner_tid)(struct qut_target *target, const struct qut_target_thread *thread);
    void (*close)(struct qut_target *target);
};

struct qut_target {
    const struct target_kind *kind;
    const struct arch *arch;
    uint64_t pac_mask;
    bool pac_mask_given;
    uint64_t vector_bytes;                      // of one vector register; 0: not known
    bool interrupt, one_by_one, frame_pointers; // as in struct qut_target_options
    bool restart_calls; // as interrupt, but calls begin anew where they would return EINTR, with all of their timeout;
                        // ioctl, of which it is not known what was done by then, is left asleep
    bool goes_first; // the thread that stops has real-time priority: only while it sleeps others get to where they stop
    // Options, copied.
    char *cache_directory, *sysroot;
    qut_compile_fn compile;
    void *compile_context;
    // The address space.
    struct target_maps maps;
    struct target_image **images;
    size_t image_count, image_capacity;
    struct target_code_range *ranges;
    size_t range_count;
    size_t last_range;                   // where the last lookup ended
    uint64_t program_entry, linker_base; // AT_ENTRY, AT_BASE; 0: not known
    bool files_are_memory;               // what no memory was kept of is as in its file
    // Threads, ascending by id.
    struct qut_target_thread *threads;
    size_t thread_count, thread_capacity;
    bool stopped;
    uint64_t stop_began_ns; // 0: never
    uint64_t taken_ns;      // one by one: when the thread that was walked last was asked to stop
    uint64_t longest_ns;    // ... the longest time from there to when it was let go
    // Of the walk that is under way.
    struct target_window windows[TARGET_STACK_WINDOWS];
    struct target_window code_window;
    unsigned older_window;
    struct target_read_note *notes;     // NULL: not kept
    struct target_read_note *note_room; // where they are, if they are; NULL: never needed
    size_t note_count;
    bool notes_overflow;
    struct target_copy *copy; // NULL: memory is read as it is
    struct target_go go;
    uint64_t art_thread;              // of the thread that is walked
    struct target_machine *machine;   // what virtual machines publish; NULL: not asked for
    struct target_code_map *perf_map; // what they write for perf; NULL: not asked for
    struct target_jit_dump *jit_dump; // ... in its other form; NULL: not asked for
    struct target_python *python;     // CPython; NULL: not asked for
    struct script_machine *v8;        // V8; NULL: not asked for
    void (*free_v8)(struct qut_target *target);
    // The file whose bytes stand for memory, open.
    struct target_image *open_image;
    int open_fd;
    void *source; // of the kind
};

// ---- target.c

struct qut_target *target_new(const struct target_kind *kind, const struct qut_target_options *options);
__attribute__((format(printf, 2, 3))) int target_fail(struct qut_target_error *error, const char *format, ...);
// At the end of the list; NULL: no memory. Its registers are unread.
struct qut_target_thread *target_add_thread(struct qut_target *target, pid_t tid);
void target_sort_threads(struct qut_target *target);
// From AT_* pairs of the target's word size.
void target_take_auxv(struct qut_target *target, const uint8_t *bytes, size_t size, uint64_t *vdso);
// aarch64, where it is not given: the bits above what the highest mapped address needs. Else 0.
uint64_t target_pac_mask_of_maps(const struct qut_target *target);

// ---- address_space.c

// Takes maps over: finds out what is what. Images that are still there keep their tables. 0, or -1: no memory.
int target_take_maps(struct qut_target *target, struct target_maps *maps);
void target_free_images(struct qut_target *target);
// The image of a mapping; one is made up for what is no ELF. NULL: no memory.
struct target_image *target_image_of(struct qut_target *target, struct target_map *map);

// ---- identify.c

// Sets map->image where the mapping belongs to an ELF image: looks at files and at the memory of the mapping and those
// before it. 0, or -1: no memory.
int target_identify(struct qut_target *target, size_t map_index);
// An image with the same identity as *wanted, or a new one.
struct target_image *target_intern_image(struct qut_target *target, const struct target_image *wanted);

// ---- oat_file.c

// Fills the image's identity, if it is that of an OAT file without build-id: from the file, fd, or -1: from memory.
// False: the file is another one than is mapped. load_bias, build_id and file_offset are filled.
bool target_identify_oat(struct qut_target *target, const struct elf_head *head, int fd, struct target_image *image);

// ---- image_table.c

// Makes the table, if that was not tried before.
void target_make_table(struct qut_target *target, struct target_image *image);
// An image as in its file, as far as its segments are mapped and can be read; the rest is zero, and *incomplete is set
// where something could not. In pages, for os_free_pages. NULL: it is empty, or over 1 GiB, or there is no memory.
void *target_rebuild(struct qut_target *target, const struct elf_head *head, uint64_t load_bias, size_t *size,
                     bool *incomplete);

// Whether a table says anything of a virtual address.
static inline bool target_has_row(const struct qut_table *table, uint64_t vaddr)
{
    struct qut_rule rule;
    runtime_table_rule(table, vaddr, &rule);
    return rule.kind != QUT_RULE_HOLE;
}

// ---- walk_target.c

// Walks from registers over a copy of the stack. Other memory is read only where it cannot be written: what stands
// elsewhere in stacks is of a later moment, and ends the walk (QUT_END_BAD_MEMORY).
size_t target_walk_copy(struct qut_target *target, const struct arch_frame_regs *regs, struct target_copy *copy,
                        struct qut_frame *frames, size_t max, struct qut_end *end);

// ---- go_stacks.c

// The records of a thread that stands still, if this is a Go program: where they are known, true.
bool target_go_thread(struct qut_target *target, uint64_t thread_pointer, struct go_thread *thread);
// The same of one that sleeps, whose pointer is not known: as go_thread_find.
bool target_go_sleeper(struct qut_target *target, uint64_t sp, pid_t tid, uint64_t *g, struct go_thread *thread);
// For struct runtime_walk_ops: context is the target.
enum runtime_switch target_go_leave(void *context, const struct runtime_walk *walk, uint64_t *pc, uint64_t *sp,
                                    enum arch_pc_kind *kind);
// A word of a block of core registers, such as the thread pointer; 0: it is not there.
uint64_t target_core_word(const struct arch *arch, const void *block, unsigned offset);

// ---- virtual_machine.c

// Code made at run time: *code as for a module. False: nothing is known of a pc, and *code is as it was.
bool target_find_jit(struct qut_target *target, uint64_t pc, struct runtime_code *code);
// Code of a machine that says itself how its frames are left: the same, and the rule of a frame of it.
bool target_find_hotspot(struct qut_target *target, uint64_t pc, struct runtime_code *code);
// Code of ART's JIT that no symbol file covers: true, and *code is filled.
bool target_find_art(struct qut_target *target, uint64_t pc, struct runtime_code *code);
// For struct runtime_walk_ops: context is the target.
bool target_art_true_return(void *context, uint64_t sp, uint64_t *pc);
// All that method tracing of Android's runtime keeps for a thread that stands still (libqut/art/traced.h).
size_t target_art_returns(struct qut_target *target, uint64_t art_thread, struct art_return *returns, size_t max);
// What leads to its records, in a block of core registers; 0: it is not there.
uint64_t target_art_thread(const struct arch *arch, const void *block);
// Of a frame in code of a virtual machine's, whichever it is.
bool target_machine_rule(void *target, const void *machine, uint64_t pc, enum arch_pc_kind kind, struct qut_rule *rule,
                         struct arch_interpreted *interpreted);
bool target_hotspot_rule(void *target, const void *machine, uint64_t pc, enum arch_pc_kind kind, struct qut_rule *rule,
                         struct arch_interpreted *interpreted);
// Fills code_id of frames that stand in such code.
void target_hotspot_identify(struct qut_target *target, struct qut_frame *frames, size_t count);
// Why nothing is known of a machine that is there. False: there is none, or all is known.
bool target_hotspot_reason(struct qut_target *target, char *reason, size_t size);
// Why a pc in executable memory that belongs to no ELF image has no table. False: no code is made here.
bool target_jit_reason(struct qut_target *target, uint64_t pc, char *reason, size_t size);
// A live process may have gone on since the last walk.
void target_jit_new_moment(struct qut_target *target);
// Whether the symbol files that the walk used are still registered.
bool target_jit_holds(struct qut_target *target);
// A piece of code by the map that its process writes for perf (/tmp/perf-PID.map), the latest that has the address.
bool target_perf_map_find(struct qut_target *target, uint64_t address, struct qut_made_code *code);
void target_free_perf_map(struct qut_target *target);
// ... by the file jit-PID.dump that it maps, perf's other form of map: as it was at a moment of the monotonic clock;
// UINT64_MAX: as it is.
bool target_jit_dump_find(struct qut_target *target, uint64_t address, uint64_t at_ns, struct qut_made_code *code);
void target_free_jit_dump(struct qut_target *target);
void target_free_python(struct qut_target *target);
// Mappings have changed.
void target_jit_new_maps(struct qut_target *target);
void target_free_machine(struct qut_target *target);

// ---- target_memory.c

// Memory, and where none was kept, the file's bytes if target->files_are_memory.
size_t target_read_any(struct qut_target *target, uint64_t address, void *bytes, size_t size);
// Forgets what the windows hold, and the notes.
void target_begin_reads(struct qut_target *target);
// For struct runtime_walk_ops: context is the target.
bool target_read_word(void *context, uint64_t address, uint64_t *value);
size_t target_read_code(void *context, uint64_t address, void *bytes, size_t size);
// Whether every word that was noted is still what it was.
bool target_words_hold(struct qut_target *target);

#endif
