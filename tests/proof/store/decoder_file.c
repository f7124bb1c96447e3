// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/proof/store/decoder.h"

bool decoder_file(const char *from, struct decoder *decoder, decoded_fn visit, void *context,
                  struct decoded_totals *totals)
{
    struct stat status;
    int fd = open(from, O_RDONLY | O_CLOEXEC);
    void *memory = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &status) == 0)
        memory = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    memset(decoder, 0, sizeof *decoder);
    if (memory == MAP_FAILED) {
        decoder_fault(decoder, "cannot map %s: %s", from, strerror(errno));
        return false;
    }
    bool is_fine = decoder_open(decoder, memory, (size_t)status.st_size) &&
                   decoder_all(decoder, 0, visit, context, totals) && decoder->fault_count == 0;
    munmap(memory, (size_t)status.st_size);
    return is_fine;
}
