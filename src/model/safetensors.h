/* safetensors files: named tensors, written whole or not at all, and read through a map once everything was checked.
 *
 * The format (https://github.com/huggingface/safetensors): eight bytes, the header's length n, little endian; n bytes
 * of JSON, an object that gives each name a dtype, a shape and data_offsets [begin, end) within the rest, and may hold
 * texts under __metadata__; then the numbers, little endian, row-major, without a hole. Model, checkpoint and test
 * fixtures are such files, so any Python user can open them. */
#ifndef HW_MODEL_SAFETENSORS_H
#define HW_MODEL_SAFETENSORS_H

#include <headwise/base.h>

typedef enum hw_dtype {
    HW_F64, HW_F32, HW_F16, HW_BF16, HW_I64, HW_I32, HW_I16, HW_I8, HW_U64, HW_U32, HW_U16, HW_U8, HW_BOOL
} hw_dtype;

#ifdef HW_REAL_DOUBLE
#define HW_DTYPE_REAL HW_F64 /* the dtype of hw_real */
#else
#define HW_DTYPE_REAL HW_F32
#endif

#define HW_STORED_RANK 8

/* A tensor in a file, or on its way into one. */
typedef struct hw_stored {
    const char *name;
    hw_dtype dtype;
    int rank; /* 0: one number */
    int64_t shape[HW_STORED_RANK];
    const void *data; /* little endian; in a map it may stand unaligned if another program wrote the file */
} hw_stored;

typedef struct hw_metadata {
    const char *key, *value; /* UTF-8 */
} hw_metadata;

const char *hw_dtype_name(hw_dtype dtype); /* "F32" */
int hw_dtype_size(hw_dtype dtype);         /* bytes a number */

/* Writes the file by hw_atomic, straight from where the tensors lie. The wider types come first, names ascend among
 * equals, so that every tensor is aligned and the bytes depend on names, numbers and the order of the metadata alone.
 * Names must differ (HW_CHECK). false: the file could not be written, or a text is not UTF-8. */
bool hw_safetensors_save(const char *path, const hw_stored *tensors, int count, const hw_metadata *metadata, int pairs,
                         hw_error *err);

/* An open file. Whatever its bytes are, opening either fails with a message that names file and tensor, or every tensor
 * lies within the map, none on top of another. Names and data stay valid until it is closed. */
typedef struct hw_safetensors hw_safetensors;

hw_safetensors *hw_safetensors_open(const char *path, hw_error *err); /* the caller closes it */
void hw_safetensors_close(hw_safetensors *file);                      /* NULL is fine */

int hw_safetensors_count(const hw_safetensors *file);
const hw_stored *hw_safetensors_at(const hw_safetensors *file, int i); /* 0..count-1, names ascending */
const hw_stored *hw_safetensors_find(const hw_safetensors *file, const char *name); /* or NULL */
const char *hw_safetensors_metadata(const hw_safetensors *file, const char *key);   /* or NULL */

/* Copies a tensor into out as numbers of this dtype. F64, F32, F16 and BF16 are converted to a wanted F64 or F32
 * (rounded to nearest); any other dtype must be what the file holds. A missing name, another shape or dtype is an
 * error. */
bool hw_safetensors_read(const hw_safetensors *file, const char *name, hw_dtype dtype, int rank, const int64_t *shape,
                         void *out, hw_error *err);

#endif
