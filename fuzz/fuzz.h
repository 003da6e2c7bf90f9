/* What the fuzzers share: bytes as a file. libFuzzer calls LLVMFuzzerTestOneInput with bytes that it makes up. */
#ifndef HW_FUZZ_H
#define HW_FUZZ_H

#include <headwise.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file in memory that holds these bytes; its path goes into path. The caller closes it. */
static inline int fuzz_file(const uint8_t *data, size_t size, char path[64])
{
    int file = memfd_create("fuzz", MFD_CLOEXEC);
    HW_CHECK(file >= 0 && (size == 0 || write(file, data, size) == (ssize_t)size) && lseek(file, 0, SEEK_SET) == 0,
             "no file in memory");
    snprintf(path, 64, "/proc/self/fd/%d", file);
    return file;
}

#endif
