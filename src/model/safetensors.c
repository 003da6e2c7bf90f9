/* safetensors, written and read (the format stands in model.h).
 *
 * Writing builds only the header in memory; the numbers go from the tensors to the file. Reading trusts nothing: the
 * header's length, its JSON, each dtype, shape and pair of offsets are checked, and the tensors must cover the data
 * exactly, before a pointer is given out. Texts from the file appear in messages cut and without control characters. */
#include <headwise/model.h>

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are mapped as they lie in the file: little endian");

#define HEADER_MAX 100000000 /* bytes; the limit of the format's reference implementation */
#define METADATA "__metadata__"

struct hw_safetensors {
    char *path;
    hw_map map;
    json_t *header;
    const uint8_t *data; /* what follows the header */
    int64_t size;        /* of the data */
    hw_stored *tensors;  /* names ascending */
    int count;
};

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* The numbers of the floating-point types. They need not be aligned. */
static double double_at(const uint8_t *p)
{
    double x;
    memcpy(&x, p, sizeof x);
    return x;
}

static double float_at(const uint8_t *p)
{
    float x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* bfloat16: the upper half of a float. */
static double brain_at(const uint8_t *p)
{
    const uint8_t whole[4] = {0, 0, p[0], p[1]};
    return float_at(whole);
}

/* IEEE 754 half precision: 1 bit of sign, 5 of exponent, 10 of fraction. */
static double half_at(const uint8_t *p)
{
    int bits = p[0] | p[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
    double x = exponent == 31  ? (fraction ? NAN : INFINITY)
               : exponent != 0 ? ldexp(1024 + fraction, exponent - 25)
                               : ldexp(fraction, -24);
    return bits >> 15 ? -x : x;
}

static const struct {
    const char *name;
    int size;
    double (*number_at)(const uint8_t *); /* floating-point types */
} dtypes[] = {
    [HW_F64] = {"F64", 8, double_at}, [HW_F32] = {"F32", 4, float_at}, [HW_F16] = {"F16", 2, half_at},
    [HW_BF16] = {"BF16", 2, brain_at}, [HW_I64] = {"I64", 8, NULL},    [HW_I32] = {"I32", 4, NULL},
    [HW_I16] = {"I16", 2, NULL},       [HW_I8] = {"I8", 1, NULL},      [HW_U64] = {"U64", 8, NULL},
    [HW_U32] = {"U32", 4, NULL},       [HW_U16] = {"U16", 2, NULL},    [HW_U8] = {"U8", 1, NULL},
    [HW_BOOL] = {"BOOL", 1, NULL},
};
#define DTYPES (int)(sizeof dtypes / sizeof *dtypes)

const char *hw_dtype_name(hw_dtype dtype)
{
    return dtypes[dtype].name;
}

int hw_dtype_size(hw_dtype dtype)
{
    return dtypes[dtype].size;
}

/* How many bytes the tensor takes, or -1 where they cannot be counted in 63 bits. */
static int64_t stored_bytes(const hw_stored *t)
{
    int64_t bytes = dtypes[t->dtype].size;
    for (int i = 0; i < t->rank; i++)
        if (__builtin_mul_overflow(bytes, t->shape[i], &bytes)) return -1;
    return bytes;
}

#define SHAPE_TEXT 192

/* "[12, 64]" into text, which is returned. */
static const char *shape_text(char text[SHAPE_TEXT], int rank, const int64_t *shape)
{
    int at = snprintf(text, SHAPE_TEXT, "[");
    for (int i = 0; i < rank; i++)
        at += snprintf(text + at, (size_t)(SHAPE_TEXT - at), "%s%" PRId64, i ? ", " : "", shape[i]);
    snprintf(text + at, (size_t)(SHAPE_TEXT - at), "]");
    return text;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static int by_size_and_name(const void *a, const void *b)
{
    const hw_stored *x = *(const hw_stored *const *)a, *y = *(const hw_stored *const *)b;
    int wider = dtypes[y->dtype].size - dtypes[x->dtype].size;
    return wider ? wider : strcmp(x->name, y->name);
}

static bool add_metadata(json_t *header, const hw_metadata *metadata, int pairs, hw_error *err)
{
    json_t *texts = json_object();
    if (pairs > 0) json_object_set_new(header, METADATA, texts);
    else json_decref(texts);
    for (int i = 0; i < pairs; i++) {
        const char *key = metadata[i].key;
        HW_CHECK(!json_object_get(texts, key), "two texts of metadata are called %s", key);
        if (json_object_set_new(texts, key, json_string(metadata[i].value)))
            return hw_fail(err, "the metadata %s is not valid UTF-8", key);
    }
    return true;
}

static bool add_tensor(json_t *header, const hw_stored *t, int64_t *offset, hw_error *err)
{
    int64_t bytes = stored_bytes(t), begin = *offset;
    HW_CHECK(t->rank >= 0 && t->rank <= HW_STORED_RANK && bytes >= 0, "tensor %s: bad shape", t->name);
    HW_CHECK(!json_object_get(header, t->name) && strcmp(t->name, METADATA), "two tensors are called %s", t->name);
    *offset += bytes;
    json_t *shape = json_array();
    for (int i = 0; i < t->rank; i++) json_array_append_new(shape, json_integer(t->shape[i]));
    json_t *entry = json_pack("{s:s, s:o, s:[I,I]}", "dtype", dtypes[t->dtype].name, "shape", shape, "data_offsets",
                              (json_int_t)begin, (json_int_t)*offset);
    if (json_object_set_new(header, t->name, entry)) return hw_fail(err, "a tensor's name is not valid UTF-8");
    return true;
}

/* The JSON of the header, for the caller to free, or NULL. */
static char *header_text(const hw_stored *const *order, int count, const hw_metadata *metadata, int pairs,
                         hw_error *err)
{
    json_t *header = json_object();
    int64_t offset = 0;
    bool ok = add_metadata(header, metadata, pairs, err);
    for (int i = 0; ok && i < count; i++) ok = add_tensor(header, order[i], &offset, err);
    char *text = ok ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(header);
    if (text && strlen(text) > HEADER_MAX - 8) {
        hw_fail(err, "its header would have %zu bytes, but the format allows %d", strlen(text), HEADER_MAX);
        free(text);
        return NULL;
    }
    return text;
}

static bool write_file(const char *path, const char *header, const hw_stored *const *order, int count, hw_error *err)
{
    hw_atomic file;
    if (!hw_atomic_begin(&file, path, err)) return false;
    uint64_t padded = (strlen(header) + 7) / 8 * 8;
    fwrite(&padded, sizeof padded, 1, file.stream);
    fprintf(file.stream, "%-*s", (int)padded, header);
    for (int i = 0; i < count && !ferror(file.stream); i++) {
        size_t bytes = (size_t)stored_bytes(order[i]);
        if (bytes) fwrite(order[i]->data, 1, bytes, file.stream); /* an empty tensor's data may be NULL */
    }
    return hw_atomic_commit(&file, err);
}

bool hw_safetensors_save(const char *path, const hw_stored *tensors, int count, const hw_metadata *metadata, int pairs,
                         hw_error *err)
{
    const hw_stored **order = calloc((size_t)count + 1, sizeof *order);
    HW_CHECK(order, "out of memory");
    for (int i = 0; i < count; i++) order[i] = &tensors[i];
    qsort(order, (size_t)count, sizeof *order, by_size_and_name);
    char *header = header_text(order, count, metadata, pairs, err);
    bool ok = header ? write_file(path, header, order, count, err) : hw_fail_in(err, "%s: ", path);
    free(header);
    free(order);
    return ok;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

#define SHOWN 160

/* A text of the file as it may stand in a message: cut between characters, control characters replaced. */
static const char *shown(char out[SHOWN], const char *text)
{
    size_t length = strnlen(text, SHOWN - 1);
    while (length > 0 && (text[length] & 0xc0) == 0x80) length--;
    for (size_t i = 0; i < length; i++) out[i] = (unsigned char)text[i] < ' ' || text[i] == 127 ? '?' : text[i];
    out[length] = 0;
    return out;
}

static bool read_header(hw_safetensors *file, hw_error *err)
{
    size_t size = file->map.size;
    uint64_t length;
    if (size < sizeof length) return hw_fail(err, "this is not a safetensors file: it has only %zu %s", size,
                                            hw_plural((int64_t)size, "byte", "bytes"));
    memcpy(&length, file->map.data, sizeof length);
    if (length > HEADER_MAX)
        return hw_fail(err, "this is not a safetensors file, or it is damaged: its header would have %" PRIu64
                       " bytes, but the format allows %d", length, HEADER_MAX);
    if (length > size - sizeof length)
        return hw_fail(err, "the file is damaged or cut short: its header should have %" PRIu64
                       " bytes, but %zu %s left", length, size - sizeof length,
                       hw_plural((int64_t)(size - sizeof length), "is", "are"));
    const uint8_t *text = file->map.data + sizeof length;
    file->data = text + length;
    file->size = (int64_t)(size - sizeof length - length);
    json_error_t wrong;
    file->header = json_loadb((const char *)text, (size_t)length, JSON_REJECT_DUPLICATES, &wrong);
    char reason[SHOWN];
    if (!file->header)
        return hw_fail(err, "the header is not valid JSON: %s (byte %d)", shown(reason, wrong.text), wrong.position);
    if (!json_is_object(file->header)) return hw_fail(err, "the header is not a JSON object");
    return true;
}

static bool check_metadata(const hw_safetensors *file, hw_error *err)
{
    json_t *metadata = json_object_get(file->header, METADATA), *value;
    const char *key;
    char name[SHOWN];
    if (metadata && !json_is_object(metadata)) return hw_fail(err, METADATA " is not a JSON object");
    json_object_foreach(metadata, key, value)
        if (!json_is_string(value)) return hw_fail(err, METADATA ": %s is not a string", shown(name, key));
    return true;
}

/* An array of at most max non-negative integers; *count is how many. */
static bool read_integers(const json_t *array, const char *what, int max, int64_t *out, int *count, hw_error *err)
{
    if (!json_is_array(array)) return hw_fail(err, "%s is not a list of integers", what);
    if (json_array_size(array) > (size_t)max)
        return hw_fail(err, "%s has %zu entries, at most %d expected", what, json_array_size(array), max);
    *count = (int)json_array_size(array);
    for (int i = 0; i < *count; i++) {
        const json_t *item = json_array_get(array, (size_t)i);
        if (!json_is_integer(item)) return hw_fail(err, "%s is not a list of integers", what);
        out[i] = json_integer_value(item);
        if (out[i] < 0) return hw_fail(err, "%s has a negative number, %" PRId64, what, out[i]);
    }
    return true;
}

static bool read_dtype(const json_t *value, hw_dtype *dtype, hw_error *err)
{
    const char *name = json_string_value(value);
    char text[SHOWN];
    if (!name) return hw_fail(err, "dtype is not a string");
    for (int i = 0; i < DTYPES; i++)
        if (!strcmp(dtypes[i].name, name)) {
            *dtype = (hw_dtype)i;
            return true;
        }
    return hw_fail(err, "dtype %s is not known; numbers and BOOL of 8 to 64 bits are", shown(text, name));
}

static bool read_entry(const hw_safetensors *file, const json_t *entry, hw_stored *t, hw_error *err)
{
    int64_t offsets[2];
    int count;
    if (!json_is_object(entry)) return hw_fail(err, "its entry is not a JSON object");
    if (!read_dtype(json_object_get(entry, "dtype"), &t->dtype, err)) return false;
    if (!read_integers(json_object_get(entry, "shape"), "shape", HW_STORED_RANK, t->shape, &t->rank, err)) return false;
    if (!read_integers(json_object_get(entry, "data_offsets"), "data_offsets", 2, offsets, &count, err)) return false;
    if (count != 2) return hw_fail(err, "data_offsets needs two numbers, begin and end");
    if (offsets[0] > offsets[1])
        return hw_fail(err, "data_offsets ends at %" PRId64 ", before it begins at %" PRId64, offsets[1], offsets[0]);
    if (offsets[1] > file->size)
        return hw_fail(err, "its data ends at byte %" PRId64 ", but the file holds only %" PRId64
                       "; it is damaged or cut short", offsets[1], file->size);
    char text[SHAPE_TEXT];
    int64_t bytes = stored_bytes(t), given = offsets[1] - offsets[0];
    if (bytes < 0) return hw_fail(err, "shape %s is too large", shape_text(text, t->rank, t->shape));
    if (bytes != given)
        return hw_fail(err, "shape %s of %s needs %" PRId64 " %s, but data_offsets gives %" PRId64,
                       shape_text(text, t->rank, t->shape), dtypes[t->dtype].name, bytes,
                       hw_plural(bytes, "byte", "bytes"), given);
    t->data = file->data + offsets[0];
    return true;
}

static bool read_tensors(hw_safetensors *file, hw_error *err)
{
    const char *name;
    json_t *entry;
    char text[SHOWN];
    file->tensors = calloc(json_object_size(file->header) + 1, sizeof *file->tensors);
    HW_CHECK(file->tensors, "out of memory");
    json_object_foreach(file->header, name, entry) {
        if (!strcmp(name, METADATA)) continue;
        hw_stored *t = &file->tensors[file->count++];
        t->name = name;
        if (!read_entry(file, entry, t, err)) return hw_fail_in(err, "tensor %s: ", shown(text, name));
    }
    return true;
}

static int by_place(const void *a, const void *b)
{
    const hw_stored *x = a, *y = b;
    const uint8_t *p = x->data, *q = y->data;
    if (p == q) return stored_bytes(x) > stored_bytes(y) ? 1 : -(stored_bytes(x) < stored_bytes(y));
    return p > q ? 1 : -1;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const hw_stored *)a)->name, ((const hw_stored *)b)->name);
}

/* The format allows no hole and no byte that belongs to two tensors. */
static bool check_cover(hw_safetensors *file, hw_error *err)
{
    char name[SHOWN], other[SHOWN];
    int64_t end = 0;
    qsort(file->tensors, (size_t)file->count, sizeof *file->tensors, by_place);
    for (int i = 0; i < file->count; i++) {
        const hw_stored *t = &file->tensors[i];
        int64_t begin = (const uint8_t *)t->data - file->data;
        if (begin < end)
            return hw_fail(err, "tensor %s overlaps tensor %s", shown(name, t->name), shown(other, t[-1].name));
        if (begin > end)
            return hw_fail(err, "tensor %s: the %" PRId64 " bytes before it belong to no tensor", shown(name, t->name),
                           begin - end);
        end = begin + stored_bytes(t);
    }
    if (end < file->size)
        return hw_fail(err, "the last %" PRId64 " %s to no tensor", file->size - end,
                       hw_plural(file->size - end, "byte belongs", "bytes belong"));
    return true;
}

hw_safetensors *hw_safetensors_open(const char *path, hw_error *err)
{
    hw_safetensors *file = calloc(1, sizeof *file);
    HW_CHECK(file && (file->path = strdup(path)), "out of memory");
    if (!hw_map_open(&file->map, path, err)) {
        free(file->path);
        free(file);
        return NULL;
    }
    if (!read_header(file, err) || !check_metadata(file, err) || !read_tensors(file, err) || !check_cover(file, err)) {
        hw_fail_in(err, "%s: ", path);
        hw_safetensors_close(file);
        return NULL;
    }
    qsort(file->tensors, (size_t)file->count, sizeof *file->tensors, by_name);
    return file;
}

void hw_safetensors_close(hw_safetensors *file)
{
    if (!file) return;
    json_decref(file->header);
    hw_map_close(&file->map);
    free(file->tensors);
    free(file->path);
    free(file);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

int hw_safetensors_count(const hw_safetensors *file)
{
    return file->count;
}

const hw_stored *hw_safetensors_at(const hw_safetensors *file, int i)
{
    HW_CHECK(i >= 0 && i < file->count, "there is no tensor %d among %d", i, file->count);
    return &file->tensors[i];
}

const hw_stored *hw_safetensors_find(const hw_safetensors *file, const char *name)
{
    hw_stored wanted = {.name = name};
    return bsearch(&wanted, file->tensors, (size_t)file->count, sizeof *file->tensors, by_name);
}

const char *hw_safetensors_metadata(const hw_safetensors *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, METADATA), key));
}

static void convert(const hw_stored *t, hw_dtype dtype, void *out)
{
    int64_t size = dtypes[t->dtype].size, n = stored_bytes(t) / size;
    const uint8_t *p = t->data;
    for (int64_t i = 0; i < n; i++, p += size) {
        if (dtype == HW_F64) ((double *)out)[i] = dtypes[t->dtype].number_at(p);
        else ((float *)out)[i] = (float)dtypes[t->dtype].number_at(p);
    }
}

bool hw_safetensors_read(const hw_safetensors *file, const char *name, hw_dtype dtype, int rank, const int64_t *shape,
                         void *out, hw_error *err)
{
    HW_CHECK(rank >= 0 && rank <= HW_STORED_RANK, "tensor %s: rank %d", name, rank);
    const hw_stored *t = hw_safetensors_find(file, name);
    if (!t) return hw_fail(err, "%s: there is no tensor %s", file->path, name);
    if (t->rank != rank || (rank && memcmp(t->shape, shape, (size_t)rank * sizeof *shape))) {
        char has[SHAPE_TEXT], wanted[SHAPE_TEXT];
        return hw_fail(err, "%s: tensor %s: shape %s expected, but the file has %s", file->path, name,
                       shape_text(wanted, rank, shape), shape_text(has, t->rank, t->shape));
    }
    bool floats = dtypes[t->dtype].number_at && (dtype == HW_F32 || dtype == HW_F64);
    if (t->dtype != dtype && !floats)
        return hw_fail(err, "%s: tensor %s: dtype %s expected, but the file has %s", file->path, name,
                       dtypes[dtype].name, dtypes[t->dtype].name);
    if (t->dtype != dtype) convert(t, dtype, out);
    else if (stored_bytes(t)) memcpy(out, t->data, (size_t)stored_bytes(t));
    hw_map_forget(&file->map, t->data, (size_t)stored_bytes(t)); /* so that a model does not stand in memory twice */
    return true;
}
