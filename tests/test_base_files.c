/* Readers of lines, maps, directories. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <headwise/base.h>

#include "support_files.h"

/* ---- readers ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *text;
    size_t size;
    int count;
    const char *lines[4];
    size_t sizes[4];
} reader_cases[] = {
#define TEXT(text) text, sizeof text - 1
    {TEXT(""), 0, {0}, {0}},
    {TEXT("\n"), 1, {""}, {0}},
    {TEXT("a"), 1, {"a"}, {1}},
    {TEXT("a\n"), 1, {"a"}, {1}},
    {TEXT("a\nb"), 2, {"a", "b"}, {1, 1}},
    {TEXT("a\n\n\nb\n"), 4, {"a", "", "", "b"}, {1, 0, 0, 1}},
    {TEXT("a\r\nb\r\r\nc\r"), 3, {"a", "b\r", "c\r"}, {1, 2, 2}},
    {TEXT("\r\n\r\n"), 2, {"", ""}, {0, 0}},
    {TEXT("a\rb\n"), 1, {"a\rb"}, {3}},
    {TEXT("\xEF\xBB\xBF" "a\n\xEF\xBB\xBF" "b\n"), 2, {"a", "\xEF\xBB\xBF" "b"}, {1, 4}},
    {TEXT("\xEF\xBB\xBF"), 1, {""}, {0}},
    {TEXT("\xEF\xBB\n"), 1, {"\xEF\xBB"}, {2}},
    {TEXT("\xEF\xBB\xBF\r\n"), 1, {""}, {0}},
    {TEXT("a\0b\n\0\n"), 2, {"a\0b", "\0"}, {3, 1}},
    {TEXT("x\xE2\x80\xA8y\xC2\x85z\fw\v\n"), 1, {"x\xE2\x80\xA8y\xC2\x85z\fw\v"}, {11}},
    {TEXT("\x1f"), 1, {"\x1f"}, {1}},
    {TEXT("\x1f\n"), 1, {"\x1f"}, {1}},
    {TEXT("\xff\xfe\n"), 1, {"\xff\xfe"}, {2}},
};

static const char *write_gzip(const char *name, const void *bytes, size_t size, const char *mode)
{
    const char *path = scratch_path(name);
    gzFile f = gzopen(path, mode);
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(gzwrite(f, bytes, (unsigned)size), (int)size);
    ck_assert_int_eq(gzclose(f), Z_OK);
    return path;
}

static void check_lines(const char *path, int k)
{
    hw_error err;
    hw_reader *reader = hw_reader_open(path, &err);
    ck_assert_msg(reader, "%s", err.message);
    char *line;
    size_t length;
    for (int i = 0; i < reader_cases[k].count; i++) {
        ck_assert_int_eq(hw_reader_line(reader, &line, &length, &err), 1);
        ck_assert_uint_eq(length, reader_cases[k].sizes[i]);
        ck_assert_mem_eq(line, reader_cases[k].lines[i], length);
        ck_assert_int_eq(line[length], 0);
        ck_assert_int_eq(hw_reader_number(reader), i + 1);
    }
    for (int again = 0; again < 2; again++) ck_assert_int_eq(hw_reader_line(reader, &line, &length, &err), 0);
    hw_reader_close(reader);
}

START_TEST(lines)
{
    check_lines(scratch_write("plain", reader_cases[_i].text, reader_cases[_i].size), _i);
    check_lines(write_gzip("packed.gz", reader_cases[_i].text, reader_cases[_i].size, "wb"), _i);
    check_lines(write_gzip("packed_without_a_name", reader_cases[_i].text, reader_cases[_i].size, "wb"), _i);
}
END_TEST

/* Lines of lengths around the buffer's, and one of five million bytes. */
static size_t length_of(int i) { return i == 40 ? 5000000 : (size_t)(i * 65536 / 20 + i % 5); }

static char *long_lines(size_t *size)
{
    *size = 0;
    for (int i = 0; i < 60; i++) *size += length_of(i) + 1;
    char *text = malloc(*size), *to = text;
    for (int i = 0; i < 60; i++) {
        memset(to, 'a' + i % 26, length_of(i));
        to += length_of(i);
        *to++ = '\n';
    }
    return text;
}

static void check_long_lines(const char *path)
{
    hw_error err;
    hw_reader *reader = hw_reader_open(path, &err);
    ck_assert_msg(reader, "%s", err.message);
    char *line;
    size_t length;
    for (int i = 0; i < 60; i++) {
        ck_assert_int_eq(hw_reader_line(reader, &line, &length, &err), 1);
        ck_assert_uint_eq(length, length_of(i));
        size_t same = 0;
        while (line[same] == 'a' + i % 26) same++;
        ck_assert_uint_eq(same, length);
    }
    ck_assert_int_eq(hw_reader_line(reader, &line, &length, &err), 0);
    hw_reader_close(reader);
}

START_TEST(lines_of_any_length)
{
    size_t size;
    char *text = long_lines(&size);
    check_long_lines(scratch_write("plain", text, size));
    check_long_lines(write_gzip("packed.gz", text, size, "wb"));
    write_gzip("members.gz", text, size / 3, "wb");
    write_gzip("members.gz", text + size / 3, 7, "ab");
    check_long_lines(write_gzip("members.gz", text + size / 3 + 7, size - size / 3 - 7, "ab"));
    free(text);
}
END_TEST

/* Reads all lines; the message where it ends in an error, or NULL. */
static const char *read_through(const char *path, int *count)
{
    static hw_error err;
    hw_reader *reader = hw_reader_open(path, &err);
    *count = 0;
    if (!reader) return err.message;
    char *line;
    size_t length;
    int status;
    while ((status = hw_reader_line(reader, &line, &length, &err)) > 0) ++*count;
    if (status < 0) ck_assert_int_eq(hw_reader_line(reader, &line, &length, NULL), -1);
    hw_reader_close(reader);
    return status < 0 ? err.message : NULL;
}

START_TEST(damaged_gzip)
{
    char text[30000];
    hw_random random = hw_random_new(1, 1);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i % 100 == 99 ? '\n' : (char)('a' + hw_random_below(&random, 26));
    const char *path = write_gzip("x.gz", text, sizeof text, "wb");
    size_t size;
    char *packed = scratch_read(path, &size);
    int count;
    ck_assert_ptr_null(read_through(path, &count));
    ck_assert_int_eq(count, 300);
    char expected[256];

    scratch_write("cut.gz", packed, size / 2);
    snprintf(expected, sizeof expected, "%s: the gzip data ends too early; the file was cut off",
             scratch_path("cut.gz"));
    ck_assert_str_eq(read_through(scratch_path("cut.gz"), &count), expected);
    ck_assert_int_gt(count, 50);
    ck_assert_int_lt(count, 300);

    scratch_write("no_trailer.gz", packed, size - 4);
    ck_assert_ptr_nonnull(read_through(scratch_path("no_trailer.gz"), &count));

    packed[size - 6] ^= 1; /* the checksum */
    scratch_write("sum.gz", packed, size);
    snprintf(expected, sizeof expected, "%s: the gzip data is corrupt", scratch_path("sum.gz"));
    ck_assert_str_eq(read_through(scratch_path("sum.gz"), &count), expected);
    packed[size - 6] ^= 1;

    char *padded = calloc(1, size + 600);
    memcpy(padded, packed, size);
    scratch_write("padded.gz", padded, size + 600);
    ck_assert_ptr_null(read_through(scratch_path("padded.gz"), &count));
    ck_assert_int_eq(count, 300);
    padded[size + 100] = 'x';
    scratch_write("garbage.gz", padded, size + 600);
    ck_assert_ptr_nonnull(read_through(scratch_path("garbage.gz"), &count));
    free(padded);
    free(packed);

    scratch_text("text.gz", "this is text\n");
    snprintf(expected, sizeof expected, "%s: it is no gzip file, in spite of its name", scratch_path("text.gz"));
    ck_assert_str_eq(read_through(scratch_path("text.gz"), &count), expected);
    ck_assert_int_eq(count, 0);
    ck_assert_ptr_nonnull(read_through(scratch_text("empty.gz", ""), &count));
}
END_TEST

START_TEST(unreadable)
{
    int count;
    char expected[256];
    const char *path = scratch_path("missing");
    snprintf(expected, sizeof expected, "%s: cannot be read: No such file or directory", path);
    ck_assert_str_eq(read_through(path, &count), expected);
    path = scratch_path(".");
    snprintf(expected, sizeof expected, "%s: cannot be read: it is a directory; a text file is needed", path);
    ck_assert_str_eq(read_through(path, &count), expected);
}
END_TEST

START_TEST(pipes_give_lines_as_they_come)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    int saved = dup(STDIN_FILENO);
    ck_assert_int_ge(dup2(ends[0], STDIN_FILENO), 0);
    close(ends[0]);
    hw_error err;
    hw_reader *reader = hw_reader_open("-", &err);
    ck_assert_ptr_nonnull(reader);
    char *line;
    size_t length;
    ck_assert(hw_reader_waiting(reader));
    ck_assert_int_eq(write(ends[1], "a\nb\nc", 5), 5);
    ck_assert(!hw_reader_waiting(reader));
    ck_assert_int_eq(hw_reader_line(reader, &line, &length, &err), 1);
    ck_assert_str_eq(line, "a");
    ck_assert(!hw_reader_waiting(reader));
    ck_assert_int_eq(hw_reader_line(reader, &line, &length, &err), 1);
    ck_assert_str_eq(line, "b");
    ck_assert(hw_reader_waiting(reader)); /* half a line */
    ck_assert_int_eq(write(ends[1], "d\n", 2), 2);
    ck_assert(!hw_reader_waiting(reader));
    ck_assert_int_eq(hw_reader_line(reader, &line, &length, &err), 1);
    ck_assert_str_eq(line, "cd");
    ck_assert(hw_reader_waiting(reader));
    close(ends[1]);
    ck_assert(!hw_reader_waiting(reader));
    ck_assert_int_eq(hw_reader_line(reader, &line, &length, &err), 0);
    ck_assert(!hw_reader_waiting(reader));
    hw_reader_close(reader);
    ck_assert_int_ge(fcntl(STDIN_FILENO, F_GETFD), 0); /* standard input stays open */
    dup2(saved, STDIN_FILENO);
    close(saved);
}
END_TEST

/* ---- maps and directories ---------------------------------------------------------------------------------------- */

/* A shell or an editor that shares it may have set standard input so that reading does not wait. */
START_TEST(an_input_that_does_not_wait_is_waited_for)
{
    int ends[2];
    hw_error err;
    char *line;
    size_t length;
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        usleep(50000);
        bool ok = write(ends[1], "a\n", 2) == 2;
        usleep(50000);
        _exit(!ok || write(ends[1], "b", 1) != 1);
    }
    int saved = dup(STDIN_FILENO);
    ck_assert_int_ge(dup2(ends[0], STDIN_FILENO), 0);
    close(ends[0]);
    close(ends[1]);
    hw_reader *reader = hw_reader_open("-", &err);
    ck_assert_ptr_nonnull(reader);
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(hw_reader_line(reader, &line, &length, &err) == 1, "%s", err.message);
        ck_assert_str_eq(line, i ? "b" : "a");
    }
    ck_assert_int_eq(hw_reader_line(reader, &line, &length, &err), 0);
    hw_reader_close(reader);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    dup2(saved, STDIN_FILENO);
    close(saved);
}
END_TEST

START_TEST(maps)
{
    hw_map map;
    hw_error err;
    ck_assert(hw_map_open(&map, scratch_text("file", "content"), &err));
    ck_assert_uint_eq(map.size, 7);
    ck_assert_mem_eq(map.data, "content", 7);
    hw_map_close(&map);
    hw_map_close(&map);
    ck_assert(hw_map_open(&map, scratch_text("empty", ""), &err));
    ck_assert_ptr_null(map.data);
    ck_assert_uint_eq(map.size, 0);
    hw_map_close(&map);
    ck_assert_int_eq(mkfifo(scratch_path("fifo"), 0600), 0);
    static const struct {
        const char *name, *reason;
    } cases[] = {{"missing", "No such file or directory"},
                 {".", "it is a directory; a file is needed"},
                 {"fifo", "it is not a regular file"}};
    for (int i = 0; i < 3; i++) {
        char expected[256];
        snprintf(expected, sizeof expected, "%s: cannot be read: %s", scratch_path(cases[i].name), cases[i].reason);
        ck_assert(!hw_map_open(&map, scratch_path(cases[i].name), &err));
        ck_assert_str_eq(err.message, expected);
        ck_assert_ptr_null(map.data);
    }
}
END_TEST

START_TEST(directories)
{
    hw_error err;
    const char *deep = scratch_path("a/b/c");
    ck_assert(hw_directory_make(deep, &err));
    ck_assert(hw_directory_make(deep, &err));
    ck_assert(hw_directory_make(scratch_path("a//b/d/"), &err));
    ck_assert(hw_file_exists(deep) && hw_file_exists(scratch_path("a/b/d")));
    ck_assert(hw_directory_make("/", &err) && hw_directory_make(".", &err));
    const char *file = scratch_text("a/file", "");
    char expected[512];
    ck_assert(!hw_directory_make(file, &err));
    snprintf(expected, sizeof expected, "%s: the directory cannot be made: a file of that name is in the way", file);
    ck_assert_str_eq(err.message, expected);
    ck_assert(!hw_directory_make(scratch_path("a/file/x"), &err));
    snprintf(expected, sizeof expected, "%s/x: the directory cannot be made: %s: a file of that name is in the way",
             file, file);
    ck_assert_str_eq(err.message, expected);
    ck_assert(!hw_directory_make("", &err));
}
END_TEST

START_TEST(directories_that_cannot_be_made_are_told_before)
{
    static const struct {
        const char *path, *message; /* behind the path; NULL: it can */
    } cases[] = {
        {"new/a/b", NULL},
        {"a", NULL},
        {"a/../c", NULL},
        {"file", ": the directory cannot be made: a file of that name is in the way"},
        {"file/x/y", ": the directory cannot be made: file: a file of that name is in the way"},
        {"loop", ": the directory cannot be made: Too many levels of symbolic links"},
        {"loop/x", ": the directory cannot be made: Too many levels of symbolic links"},
        {"nowhere", ": the directory cannot be made: a file of that name is in the way"},
        {"nowhere/x", ": the directory cannot be made: nowhere: a file of that name is in the way"},
        {"", ": the directory cannot be made: No such file or directory"},
    };
    char expected[512];
    hw_error err;
    ck_assert_int_eq(chdir(scratch_root()), 0);
    ck_assert_int_eq(mkdir("a", 0777), 0);
    scratch_text("file", "");
    ck_assert(!symlink("loop", "loop") && !symlink("none/at/all", "nowhere"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool can = hw_directory_can_be_made(cases[i].path, &err);
        ck_assert_msg(can == !cases[i].message, "%s", cases[i].path);
        if (can) continue;
        snprintf(expected, sizeof expected, "%s%s", cases[i].path, cases[i].message);
        ck_assert_str_eq(err.message, expected);
        ck_assert(!hw_directory_make(cases[i].path, &err));
    }
    ck_assert(!hw_file_exists("new"));
}
END_TEST

/* A program that did not do its work takes away what it made and left empty, and nothing else. */
START_TEST(empty_directories_go)
{
    hw_error err;
    ck_assert_int_eq(mkdir(scratch_path("mine"), 0777), 0);
    ck_assert(hw_directory_make(scratch_path("mine"), &err));
    ck_assert(hw_directory_make(scratch_path("mine/a/b"), &err));
    ck_assert(hw_directory_make(scratch_path("kept/a/b"), &err));
    scratch_text("kept/file", "");
    hw_directories_remove_empty();
    ck_assert(hw_file_exists(scratch_path("mine")) && !hw_file_exists(scratch_path("mine/a")));
    ck_assert(hw_file_exists(scratch_path("kept/file")) && !hw_file_exists(scratch_path("kept/a")));
}
END_TEST

START_TEST(one_at_a_time_has_a_directory)
{
    int reason, first = hw_directory_lock(scratch_path("."), &reason);
    ck_assert(first >= 0 && !reason);
    int second = hw_directory_lock(scratch_path("."), &reason);
    ck_assert_int_eq(reason, EWOULDBLOCK);
    close(first);
    close(second);
    first = hw_directory_lock(scratch_path("."), &reason);
    ck_assert(first >= 0 && !reason);
    close(first);
    hw_error err; /* what is another's now is not removed, whoever made it */
    ck_assert(hw_directory_make(scratch_path("made"), &err));
    first = hw_directory_lock(scratch_path("made"), &reason);
    second = hw_directory_lock(scratch_path("made"), &reason);
    ck_assert_int_eq(reason, EWOULDBLOCK);
    hw_directories_remove_empty();
    ck_assert(hw_file_exists(scratch_path("made")));
    close(first);
    close(second);
    ck_assert_int_eq(hw_directory_lock(scratch_path("none"), &reason), -1);
    ck_assert_int_eq(reason, ENOENT);
    ck_assert_int_eq(hw_directory_lock(scratch_text("file", ""), &reason), -1);
    ck_assert_int_eq(reason, ENOTDIR);
}
END_TEST

Suite *test_base_files(void);
Suite *test_base_files(void)
{
    Suite *suite = suite_create("base: files");
    TCase *t = tcase_create("files");
    tcase_add_checked_fixture(t, scratch_begin, scratch_end);
    tcase_add_loop_test(t, lines, 0, sizeof reader_cases / sizeof *reader_cases);
    tcase_add_test(t, lines_of_any_length);
    tcase_add_test(t, damaged_gzip);
    tcase_add_test(t, unreadable);
    tcase_add_test(t, pipes_give_lines_as_they_come);
    tcase_add_test(t, an_input_that_does_not_wait_is_waited_for);
    tcase_add_test(t, maps);
    tcase_add_test(t, directories);
    tcase_add_test(t, directories_that_cannot_be_made_are_told_before);
    tcase_add_test(t, empty_directories_go);
    tcase_add_test(t, one_at_a_time_has_a_directory);
    suite_add_tcase(suite, t);
    return suite;
}
