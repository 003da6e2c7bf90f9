/* safetensors: what is written comes back, the bytes are the same each time, and no file, however broken, is believed.
 *
 * The hostile files are a table of header, bytes of data and exact message; a file that is cut or changed anywhere must
 * be refused or stay within its map (the sanitizers watch). */
#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <headwise/model.h>

static char directory[64], path[128], second[128];

static void make_directory(void)
{
    strcpy(directory, "/tmp/headwise-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/a.safetensors", directory);
    snprintf(second, sizeof second, "%s/b.safetensors", directory);
}

static void remove_directory(void)
{
    unlink(path);
    unlink(second);
    ck_assert_int_eq(rmdir(directory), 0); /* no temporary file was left */
}

static void write_bytes(const char *to, const void *bytes, size_t size)
{
    FILE *f = fopen(to, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    ck_assert_int_eq(fclose(f), 0);
}

/* Header and data as they are given, with the header's true length in front. */
static void write_file(const char *header, const void *data, size_t size)
{
    uint64_t length = strlen(header);
    uint8_t *bytes = malloc(8 + length + size);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    if (size) memcpy(bytes + 8 + length, data, size);
    write_bytes(path, bytes, 8 + length + size);
    free(bytes);
}

static hw_safetensors *open_file(void)
{
    hw_error err = {""};
    hw_safetensors *file = hw_safetensors_open(path, &err);
    ck_assert_msg(file != NULL, "%s", err.message);
    return file;
}

/* ---- round trip -------------------------------------------------------------------------------------------------- */

static const double wide[6] = {1.5, -0.0, 1e-310, 3.141592653589793, -1e300, 0.1};
static const float single[3] = {1.5f, -2.25f, 1e-40f};
static const int64_t whole[2] = {INT64_MIN, INT64_MAX};
static const uint8_t bytes5[5] = {0, 1, 2, 254, 255};

static const hw_stored some[] = {
    {.name = "bytes", .dtype = HW_U8, .rank = 1, .shape = {5}, .data = bytes5},
    {.name = "w.weight", .dtype = HW_F32, .rank = 2, .shape = {1, 3}, .data = single},
    {.name = "a \"caf\xc3\xa9\" \xe2\x80\xa8 name", .dtype = HW_F64, .rank = 3, .shape = {1, 2, 3}, .data = wide},
    {.name = "steps", .dtype = HW_I64, .rank = 1, .shape = {2}, .data = whole},
    {.name = "number", .dtype = HW_F64, .rank = 0, .data = wide + 3},
    {.name = "empty", .dtype = HW_F32, .rank = 2, .shape = {0, 7}, .data = NULL},
};
enum { SOME = sizeof some / sizeof *some };

static const hw_metadata texts[] = {{"format", "headwise"}, {"config", "a: 1\nb: \"\xc3\xa9\"\n"}, {"empty", ""}};

START_TEST(what_is_saved_comes_back)
{
    hw_error err = {""};
    ck_assert_msg(hw_safetensors_save(path, some, SOME, texts, 3, &err), "%s", err.message);
    hw_safetensors *file = open_file();
    ck_assert_int_eq(hw_safetensors_count(file), SOME);
    for (int i = 0; i < SOME; i++) {
        const hw_stored *t = hw_safetensors_find(file, some[i].name);
        ck_assert_ptr_nonnull(t);
        ck_assert_str_eq(t->name, some[i].name);
        ck_assert_int_eq(t->dtype, some[i].dtype);
        ck_assert_int_eq(t->rank, some[i].rank);
        int64_t size = hw_dtype_size(t->dtype);
        for (int k = 0; k < t->rank; k++) {
            ck_assert_int_eq(t->shape[k], some[i].shape[k]);
            size *= t->shape[k];
        }
        if (size) ck_assert_mem_eq(t->data, some[i].data, (size_t)size);
        ck_assert_uint_eq((uintptr_t)t->data % (uintptr_t)hw_dtype_size(t->dtype), 0);
    }
    for (int i = 1; i < SOME; i++)
        ck_assert_int_lt(strcmp(hw_safetensors_at(file, i - 1)->name, hw_safetensors_at(file, i)->name), 0);
    for (int i = 0; i < 3; i++) ck_assert_str_eq(hw_safetensors_metadata(file, texts[i].key), texts[i].value);
    ck_assert_ptr_null(hw_safetensors_metadata(file, "other"));
    ck_assert_ptr_null(hw_safetensors_find(file, "w.weigh"));
    ck_assert_ptr_null(hw_safetensors_find(file, "__metadata__"));
    hw_safetensors_close(file);
}
END_TEST

START_TEST(an_empty_file_of_tensors)
{
    hw_error err = {""};
    ck_assert(hw_safetensors_save(path, NULL, 0, NULL, 0, &err));
    hw_safetensors *file = open_file();
    ck_assert_int_eq(hw_safetensors_count(file), 0);
    ck_assert_ptr_null(hw_safetensors_find(file, "w"));
    ck_assert_ptr_null(hw_safetensors_metadata(file, "format"));
    hw_safetensors_close(file);
}
END_TEST

START_TEST(the_bytes_are_those_of_the_format)
{
    static const int8_t one = 7;
    static const float two = 1.0f;
    const hw_stored tensors[] = {{.name = "b", .dtype = HW_I8, .rank = 1, .shape = {1}, .data = &one},
                                 {.name = "a", .dtype = HW_F32, .rank = 0, .data = &two}};
    const hw_metadata text = {"k", "v"};
    const char *header = "{\"__metadata__\":{\"k\":\"v\"},"
                         "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
                         "\"b\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[4,5]}}      ";
    ck_assert_uint_eq(strlen(header) % 8, 0);
    hw_error err = {""};
    ck_assert(hw_safetensors_save(second, tensors, 2, &text, 1, &err));
    write_file(header, "\x00\x00\x80\x3f\x07", 5);
    hw_map expected, written;
    ck_assert(hw_map_open(&expected, path, &err) && hw_map_open(&written, second, &err));
    ck_assert_uint_eq(written.size, expected.size);
    ck_assert_mem_eq(written.data, expected.data, expected.size);
    hw_map_close(&expected);
    hw_map_close(&written);
}
END_TEST

START_TEST(the_order_given_does_not_matter)
{
    hw_stored turned[SOME];
    for (int i = 0; i < SOME; i++) turned[i] = some[SOME - 1 - i];
    hw_error err = {""};
    ck_assert(hw_safetensors_save(path, some, SOME, texts, 3, &err));
    ck_assert(hw_safetensors_save(second, turned, SOME, texts, 3, &err));
    hw_map a, b;
    ck_assert(hw_map_open(&a, path, &err) && hw_map_open(&b, second, &err));
    ck_assert_uint_eq(a.size, b.size);
    ck_assert_mem_eq(a.data, b.data, a.size);
    hw_map_close(&a);
    hw_map_close(&b);
}
END_TEST

START_TEST(saving_fails_with_a_reason)
{
    hw_error err = {""};
    const hw_metadata latin1 = {"config", "caf\xe9"};
    const hw_stored named = {.name = "caf\xe9", .dtype = HW_F32, .rank = 0, .data = single};
    char expected[256];
    ck_assert(!hw_safetensors_save(path, some, SOME, &latin1, 1, &err));
    snprintf(expected, sizeof expected, "%s: the metadata config is not valid UTF-8", path);
    ck_assert_str_eq(err.message, expected);
    ck_assert(!hw_safetensors_save(path, &named, 1, NULL, 0, &err));
    snprintf(expected, sizeof expected, "%s: a tensor's name is not valid UTF-8", path);
    ck_assert_str_eq(err.message, expected);
    ck_assert(!hw_file_exists(path));
    ck_assert(!hw_safetensors_save("/nowhere/at/all", some, SOME, NULL, 0, &err));
    ck_assert_ptr_nonnull(strstr(err.message, "/nowhere/at/all"));
}
END_TEST

START_TEST(two_tensors_of_one_name_are_a_bug)
{
    const hw_stored twice[] = {some[0], some[1], some[0]};
    if (!freopen("/dev/null", "w", stderr)) return; /* the message is wanted, but not among the results */
    hw_safetensors_save(path, twice, 3, NULL, 0, NULL);
}
END_TEST

/* ---- reading with conversion ------------------------------------------------------------------------------------- */

START_TEST(floating_types_are_converted)
{
    /* The same seven numbers in each type, as far as it can hold them. */
    static const double numbers[7] = {0.0, 1.0, -2.5, 0.00006103515625, INFINITY, -0.0, 448.0};
    static const uint16_t half[7] = {0, 0x3c00, 0xc100, 0x0400, 0x7c00, 0x8000, 0x5f00};
    static const uint16_t brain[7] = {0, 0x3f80, 0xc020, 0x3880, 0x7f80, 0x8000, 0x43e0};
    static const uint16_t subnormal[2] = {0x0001, 0x83ff}, nan = 0x7e01;
    float singles[7];
    for (int i = 0; i < 7; i++) singles[i] = (float)numbers[i];
    const hw_stored tensors[] = {{.name = "F64", .dtype = HW_F64, .rank = 1, .shape = {7}, .data = numbers},
                                 {.name = "F32", .dtype = HW_F32, .rank = 1, .shape = {7}, .data = singles},
                                 {.name = "F16", .dtype = HW_F16, .rank = 1, .shape = {7}, .data = half},
                                 {.name = "BF16", .dtype = HW_BF16, .rank = 1, .shape = {7}, .data = brain},
                                 {.name = "small", .dtype = HW_F16, .rank = 1, .shape = {2}, .data = subnormal},
                                 {.name = "nan", .dtype = HW_F16, .rank = 0, .data = &nan}};
    hw_error err = {""};
    ck_assert(hw_safetensors_save(path, tensors, 6, NULL, 0, &err));
    hw_safetensors *file = open_file();
    for (int i = 0; i < 4; i++) {
        double as_double[7];
        float as_float[7];
        ck_assert(hw_safetensors_read(file, tensors[i].name, HW_F64, 1, (const int64_t[]){7}, as_double, &err));
        ck_assert(hw_safetensors_read(file, tensors[i].name, HW_F32, 1, (const int64_t[]){7}, as_float, &err));
        ck_assert_mem_eq(as_double, numbers, sizeof numbers);
        ck_assert_mem_eq(as_float, singles, sizeof singles);
    }
    double small[2], not_a_number;
    ck_assert(hw_safetensors_read(file, "small", HW_F64, 1, (const int64_t[]){2}, small, &err));
    ck_assert(small[0] == ldexp(1, -24) && small[1] == -ldexp(1023, -24));
    ck_assert(hw_safetensors_read(file, "nan", HW_F64, 0, NULL, &not_a_number, &err));
    ck_assert(isnan(not_a_number));
    hw_safetensors_close(file);
}
END_TEST

static const struct {
    const char *name;
    hw_dtype dtype;
    int rank;
    int64_t shape[3];
    const char *message;
} misreadings[] = {
    {"w", HW_F32, 1, {3}, "there is no tensor w"},
    {"w.weight", HW_F32, 2, {3, 1}, "tensor w.weight: shape [3, 1] expected, but the file has [1, 3]"},
    {"w.weight", HW_F32, 1, {3}, "tensor w.weight: shape [3] expected, but the file has [1, 3]"},
    {"number", HW_F64, 1, {1}, "tensor number: shape [1] expected, but the file has []"},
    {"w.weight", HW_I32, 2, {1, 3}, "tensor w.weight: dtype I32 expected, but the file has F32"},
    {"steps", HW_F64, 1, {2}, "tensor steps: dtype F64 expected, but the file has I64"},
    {"w.weight", HW_F16, 2, {1, 3}, "tensor w.weight: dtype F16 expected, but the file has F32"},
};

START_TEST(another_tensor_than_expected)
{
    hw_error err = {""};
    char expected[512];
    double out[8];
    ck_assert(hw_safetensors_save(path, some, SOME, texts, 3, &err));
    hw_safetensors *file = open_file();
    ck_assert(!hw_safetensors_read(file, misreadings[_i].name, misreadings[_i].dtype, misreadings[_i].rank,
                                   misreadings[_i].shape, out, &err));
    snprintf(expected, sizeof expected, "%s: %s", path, misreadings[_i].message);
    ck_assert_str_eq(err.message, expected);
    hw_safetensors_close(file);
}
END_TEST

START_TEST(a_file_of_another_program)
{
    /* Spaces, an unaligned start, unknown fields, tensors in any order, one of no bytes between others. */
    write_file("{ \"b\" : {\"data_offsets\":[4,8],\"shape\":[1],\"dtype\":\"F32\",\"note\":{}},\n"
               "\"z\":{\"dtype\":\"F64\",\"shape\":[3,0],\"data_offsets\":[4,4]},"
               "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]} }",
               "\x00\x00\x80\x3f\x00\x00\x00\x40", 8);
    hw_safetensors *file = open_file();
    hw_error err = {""};
    float a, b;
    ck_assert(hw_safetensors_read(file, "a", HW_F32, 1, (const int64_t[]){1}, &a, &err));
    ck_assert(hw_safetensors_read(file, "b", HW_F32, 1, (const int64_t[]){1}, &b, &err));
    ck_assert(hw_safetensors_read(file, "z", HW_F32, 2, (const int64_t[]){3, 0}, NULL, &err));
    ck_assert(a == 1 && b == 2);
    hw_safetensors_close(file);
}
END_TEST

/* ---- hostile files ----------------------------------------------------------------------------------------------- */

#define ONE(dtype, shape, offsets) "{\"w\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define F32_AT(name, begin, end) "\"" name "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[" #begin "," #end "]}"

static const struct {
    const char *header;
    size_t data; /* bytes */
    const char *message;
} hostile[] = {
    {"", 0, "the header is not valid JSON: '[' or '{' expected near end of file (byte 0)"},
    {"garbage!", 0, "the header is not valid JSON: '[' or '{' expected near 'garbage' (byte 7)"},
    {"{\"w\":", 0, "the header is not valid JSON: unexpected token near end of file (byte 5)"},
    {"{\"w\x1b[31m\":1}", 0, "the header is not valid JSON: control character 0x1b near '\"w' (byte 3)"},
    {"{\"\xff\":1}", 0, "the header is not valid JSON: unable to decode byte 0xff near '\"' (byte 2)"},
    {"{} {}", 0, "the header is not valid JSON: end of file expected near '{' (byte 4)"},
    {"[]", 0, "the header is not a JSON object"},
    {"{" F32_AT("w", 0, 4) "," F32_AT("w", 4, 8) "}", 8,
     "the header is not valid JSON: duplicate object key near '\"w\"' (byte 57)"},
    {"{\"__metadata__\":1}", 0, "__metadata__ is not a JSON object"},
    {"{\"__metadata__\":{\"a\":\"b\",\"step\":3}}", 0, "__metadata__: step is not a string"},
    {"{\"w\":[]}", 0, "tensor w: its entry is not a JSON object"},
    {"{\"w\":{}}", 0, "tensor w: dtype is not a string"},
    {"{\"w\\u001b[31m\":{}}", 0, "tensor w?[31m: dtype is not a string"},
    {ONE("32", "[1]", "[0,4]"), 4, "tensor w: dtype is not a string"},
    {ONE("\"float32\"", "[1]", "[0,4]"), 4,
     "tensor w: dtype float32 is not known; numbers and BOOL of 8 to 64 bits are"},
    {ONE("\"F8\\u0007\"", "[1]", "[0,4]"), 4, "tensor w: dtype F8? is not known; numbers and BOOL of 8 to 64 bits are"},
    {ONE("\"F32\"", "4", "[0,4]"), 4, "tensor w: shape is not a list of integers"},
    {ONE("\"F32\"", "[1.0]", "[0,4]"), 4, "tensor w: shape is not a list of integers"},
    {ONE("\"F32\"", "[\"1\"]", "[0,4]"), 4, "tensor w: shape is not a list of integers"},
    {ONE("\"F32\"", "[2,-1]", "[0,4]"), 4, "tensor w: shape has a negative number, -1"},
    {ONE("\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, "tensor w: shape has 9 entries, at most 8 expected"},
    {ONE("\"F32\"", "[9223372036854775808]", "[0,4]"), 4,
     "the header is not valid JSON: too big integer near '9223372036854775808' (byte 48)"},
    {ONE("\"F32\"", "[9223372036854775807]", "[0,4]"), 4, "tensor w: shape [9223372036854775807] is too large"},
    {ONE("\"F32\"", "[4294967296,4294967296]", "[0,0]"), 0,
     "tensor w: shape [4294967296, 4294967296] is too large"},
    {ONE("\"U8\"", "[65536,65536,65536,65537]", "[0,65536]"), 65536,
     "tensor w: shape [65536, 65536, 65536, 65537] is too large"},
    {ONE("\"F32\"", "[2,3]", "[0,20]"), 20, "tensor w: shape [2, 3] of F32 needs 24 bytes, but data_offsets gives 20"},
    {ONE("\"F64\"", "[]", "[0,4]"), 4, "tensor w: shape [] of F64 needs 8 bytes, but data_offsets gives 4"},
    {ONE("\"F32\"", "[1]", "null"), 4, "tensor w: data_offsets is not a list of integers"},
    {ONE("\"F32\"", "[1]", "[0,4.0]"), 4, "tensor w: data_offsets is not a list of integers"},
    {ONE("\"F32\"", "[1]", "[4]"), 4, "tensor w: data_offsets needs two numbers, begin and end"},
    {ONE("\"F32\"", "[1]", "[0,4,8]"), 4, "tensor w: data_offsets has 3 entries, at most 2 expected"},
    {ONE("\"F32\"", "[1]", "[-4,0]"), 4, "tensor w: data_offsets has a negative number, -4"},
    {ONE("\"F32\"", "[1]", "[4,0]"), 4, "tensor w: data_offsets ends at 0, before it begins at 4"},
    {ONE("\"F32\"", "[1]", "[4,8]"), 7,
     "tensor w: its data ends at byte 8, but the file holds only 7; it is damaged or cut short"},
    {ONE("\"F32\"", "[1]", "[9223372036854775803,9223372036854775807]"), 4,
     "tensor w: its data ends at byte 9223372036854775807, but the file holds only 4; it is damaged or cut short"},
    {ONE("\"F32\"", "[1]", "[18446744073709551612,0]"), 4,
     "the header is not valid JSON: too big integer near '18446744073709551612' (byte 68)"},
    {ONE("\"F32\"", "[1]", "[4,8]"), 8, "tensor w: the 4 bytes before it belong to no tensor"},
    {ONE("\"F32\"", "[1]", "[0,4]"), 7, "the last 3 bytes belong to no tensor"},
    {"{" F32_AT("b", 0, 4) "," F32_AT("a", 2, 6) "}", 6, "tensor a overlaps tensor b"},
    {"{" F32_AT("b", 0, 4) "," F32_AT("a", 0, 4) "}", 4, NULL /* either may be named first */},
    {"{" F32_AT("a", 0, 4) "," F32_AT("b", 8, 12) "}", 12, "tensor b: the 4 bytes before it belong to no tensor"},
    {"{}", 1, "the last 1 byte belongs to no tensor"},
};

static void expect_refusal(const char *message)
{
    hw_error err = {""};
    char expected[512];
    ck_assert_ptr_null(hw_safetensors_open(path, &err));
    snprintf(expected, sizeof expected, "%s: %s", path, message ? message : "");
    if (message) ck_assert_str_eq(err.message, expected);
    else ck_assert_int_eq(strncmp(err.message, expected, strlen(expected)), 0);
}

START_TEST(a_hostile_file_is_refused)
{
    uint8_t *zeros = calloc(hostile[_i].data + 1, 1);
    write_file(hostile[_i].header, zeros, hostile[_i].data);
    free(zeros);
    expect_refusal(hostile[_i].message);
}
END_TEST

START_TEST(a_hostile_length_is_refused)
{
    struct {
        uint64_t length;
        char rest[8];
    } file = {0, "{}      "};
    hw_error err = {""};
    ck_assert_ptr_null(hw_safetensors_open(path, &err)); /* there is none */
    ck_assert_ptr_nonnull(strstr(err.message, path));
    write_bytes(path, "", 0);
    expect_refusal("this is not a safetensors file: it has only 0 bytes");
    write_bytes(path, "\x02\0\0\0\0\0\0", 7);
    expect_refusal("this is not a safetensors file: it has only 7 bytes");
    file.length = 9;
    write_bytes(path, &file, sizeof file);
    expect_refusal("the file is damaged or cut short: its header should have 9 bytes, but 8 are left");
    file.length = 100000001;
    write_bytes(path, &file, sizeof file);
    expect_refusal("this is not a safetensors file, or it is damaged: its header would have 100000001 bytes, but the "
                   "format allows 100000000");
    file.length = UINT64_MAX - 7;
    write_bytes(path, &file, sizeof file);
    expect_refusal("this is not a safetensors file, or it is damaged: its header would have 18446744073709551608 "
                   "bytes, but the format allows 100000000");
    file.length = 8;
    write_bytes(path, &file, sizeof file);
    hw_safetensors_close(open_file());
}
END_TEST

START_TEST(brackets_without_end_are_refused)
{
    enum { DEEP = 1000000 };
    char *header = malloc(DEEP + 1);
    memset(header, '[', DEEP);
    header[DEEP] = 0;
    write_file(header, NULL, 0);
    free(header);
    expect_refusal("the header is not valid JSON: maximum parsing depth reached near '[' (byte 2049)");
}
END_TEST

/* Reads everything that the file offers, so that the sanitizers see a pointer that leads out of it. */
static unsigned touch(void)
{
    hw_safetensors *file = hw_safetensors_open(path, NULL);
    unsigned sum = 0;
    for (int i = 0; file && i < hw_safetensors_count(file); i++) {
        const hw_stored *t = hw_safetensors_at(file, i);
        int64_t size = hw_dtype_size(t->dtype);
        for (int k = 0; k < t->rank; k++) size *= t->shape[k];
        for (int64_t k = 0; k < size; k++) sum += ((const uint8_t *)t->data)[k];
    }
    hw_safetensors_close(file);
    return sum;
}

START_TEST(cut_or_changed_anywhere)
{
    hw_error err = {""};
    hw_map map;
    ck_assert(hw_safetensors_save(second, some, SOME, texts, 3, &err) && hw_map_open(&map, second, &err));
    uint8_t *bytes = malloc(map.size + 1);
    memcpy(bytes, map.data, map.size);
    bytes[map.size] = 0;
    for (size_t size = 0; size <= map.size + 1; size++) {
        if (size == map.size) continue;
        write_bytes(path, bytes, size);
        expect_refusal(NULL);
    }
    hw_random random = hw_random_new(1, 0);
    unsigned sum = 0;
    for (int round = 0; round < 3000; round++) {
        size_t at = hw_random_below(&random, map.size);
        uint8_t before = bytes[at];
        bytes[at] = (uint8_t)hw_random_bits(&random);
        write_bytes(path, bytes, map.size);
        sum += touch();
        bytes[at] = before;
    }
    ck_assert_uint_gt(sum, 0);
    free(bytes);
    hw_map_close(&map);
}
END_TEST

Suite *test_safetensors(void);

Suite *test_safetensors(void)
{
    Suite *suite = suite_create("safetensors");
    TCase *tests = tcase_create("safetensors");
    tcase_add_checked_fixture(tests, make_directory, remove_directory);
    tcase_add_test(tests, what_is_saved_comes_back);
    tcase_add_test(tests, an_empty_file_of_tensors);
    tcase_add_test(tests, the_bytes_are_those_of_the_format);
    tcase_add_test(tests, the_order_given_does_not_matter);
    tcase_add_test(tests, saving_fails_with_a_reason);
    tcase_add_test(tests, floating_types_are_converted);
    tcase_add_loop_test(tests, another_tensor_than_expected, 0, sizeof misreadings / sizeof *misreadings);
    tcase_add_test(tests, a_file_of_another_program);
    tcase_add_loop_test(tests, a_hostile_file_is_refused, 0, sizeof hostile / sizeof *hostile);
    tcase_add_test(tests, a_hostile_length_is_refused);
    tcase_add_test(tests, brackets_without_end_are_refused);
    tcase_add_test(tests, cut_or_changed_anywhere);
    suite_add_tcase(suite, tests);
    TCase *bugs = tcase_create("bugs"); /* no directory, since nobody would remove it after the abort */
    tcase_add_test_raise_signal(bugs, two_tensors_of_one_name_are_a_bug, SIGABRT);
    suite_add_tcase(suite, bugs);
    return suite;
}
