/* Any bytes as a safetensors file: it is refused, or all that it offers can be read. */
#include <stdlib.h>

#include "fuzz.h"

static void read_all(const hw_safetensors *file)
{
    hw_error err;
    for (int i = 0; i < hw_safetensors_count(file); i++) {
        const hw_stored *t = hw_safetensors_at(file, i);
        size_t numbers = 1;
        for (int d = 0; d < t->rank; d++) numbers *= (size_t)t->shape[d];
        double *out = malloc((numbers + 1) * sizeof *out);
        if (out) hw_safetensors_read(file, t->name, HW_F64, t->rank, t->shape, out, &err);
        free(out);
    }
    hw_safetensors_metadata(file, "format");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hw_error err;
    char path[64];
    int file = fuzz_file(data, size, path);
    hw_safetensors *read = hw_safetensors_open(path, &err);
    if (read) read_all(read);
    hw_safetensors_close(read);
    close(file);
    return 0;
}
