/* Layer 6: arrays that outgrow memory go on in a file, of which nothing can be left over. */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "support_files.h"
#include "text/store.h"

Suite *test_text_store(void);

static const size_t sizes[] = {1000, 5000, 100000, 3000000};

/* Grows an array step by step, of which no more than 10,000 bytes are to be in memory. */
static void grow(hw_store *store)
{
    hw_store_place place = {scratch_root(), 10000};
    hw_error err;
    size_t before = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; before = sizes[i++]) {
        ck_assert_msg(hw_store_grow(store, sizes[i], &place, &err), "%s", err.message);
        ck_assert_uint_ge(store->room, sizes[i]);
        memset((char *)store->data + before, 'a' + (int)i, sizes[i] - before);
    }
    ck_assert(store->mapped);
}

START_TEST(what_was_there_stays)
{
    hw_store store = {0};
    grow(&store);
    hw_store_release(&store);
    const char *data = store.data;
    size_t before = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; before = sizes[i++])
        ck_assert(data[before] == 'a' + (int)i && data[sizes[i] - 1] == 'a' + (int)i);
    hw_store_free(&store);
}
END_TEST

/* Not even for a moment, for a kill may come at any, where the file system has files without a name. */
START_TEST(the_file_has_no_name)
{
    int nameless = open(scratch_root(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    ck_assert_int_ge(watch, 0);
    ck_assert_int_ge(inotify_add_watch(watch, scratch_root(), IN_CREATE), 0);
    hw_store store = {0};
    grow(&store);
    char event[4096];
    ssize_t got = read(watch, event, sizeof event);
    if (nameless >= 0) ck_assert_msg(got < 0, "%s was made", ((struct inotify_event *)(void *)event)->name);
    DIR *directory = opendir(scratch_root());
    for (const struct dirent *entry; (entry = readdir(directory));) ck_assert(*entry->d_name == '.');
    closedir(directory);
    hw_store_free(&store);
    close(watch);
    if (nameless >= 0) close(nameless);
}
END_TEST

START_TEST(a_place_that_is_missing_is_told)
{
    hw_store store = {0};
    hw_error err;
    char expected[512];
    const char *missing = scratch_path("missing");
    ck_assert(!hw_store_grow(&store, 100000, &(hw_store_place){missing, 1}, &err));
    snprintf(expected, sizeof expected, "%s: no file for a large corpus can be made in it: No such file or directory",
             missing);
    ck_assert_str_eq(err.message, expected);
    hw_store_free(&store);
}
END_TEST

Suite *test_text_store(void)
{
    Suite *s = suite_create("text_store");
    TCase *tc = tcase_create("store");
    tcase_add_checked_fixture(tc, scratch_begin, scratch_end);
    tcase_add_test(tc, what_was_there_stays);
    tcase_add_test(tc, the_file_has_no_name);
    tcase_add_test(tc, a_place_that_is_missing_is_told);
    suite_add_tcase(s, tc);
    return s;
}
