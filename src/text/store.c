/* Arrays that outgrow memory; see store.h. Room in the file is taken before it is mapped, because a full disk must be
 * an error here and not a signal later. */
#include "text/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool fail(const char *directory, size_t bytes, int reason, hw_error *err)
{
    return hw_fail(err, "%s: there is no room for %zu MiB of the corpus: %s", directory, bytes >> 20, strerror(reason));
}

static int open_nameless(const char *directory, hw_error *err)
{
    char path[4096];
    int file = open(directory, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0) return file;
    int size = snprintf(path, sizeof path, "%s/corpus.XXXXXX", directory); /* not every file system has such files */
    file = size < (int)sizeof path ? mkostemp(path, O_CLOEXEC) : -1;
    if (file >= 0)
        unlink(path);
    else
        hw_fail(err, "%s: no file for a large corpus can be made in it: %s", directory, strerror(errno));
    return file;
}

static void *map(int file, size_t bytes) { return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0); }

static bool grow_file(hw_store *s, size_t bytes, const char *directory, hw_error *err)
{
    int reason = posix_fallocate(s->file, 0, (off_t)bytes);
    void *data = reason ? MAP_FAILED : map(s->file, bytes);
    if (data == MAP_FAILED) return fail(directory, bytes, reason ? reason : errno, err);
    if (s->data) munmap(s->data, s->room);
    s->data = data;
    s->room = bytes;
    return true;
}

/* From memory into a file. */
static bool move_out(hw_store *s, size_t bytes, const char *directory, hw_error *err)
{
    hw_store out = {.mapped = true, .file = open_nameless(directory, err)};
    if (out.file < 0) return false;
    if (!grow_file(&out, bytes, directory, err)) {
        close(out.file);
        return false;
    }
    if (s->room) memcpy(out.data, s->data, s->room);
    hw_store_release(&out);
    free(s->data);
    *s = out;
    return true;
}

bool hw_store_grow(hw_store *s, size_t bytes, const hw_store_place *place, hw_error *err)
{
    if (bytes <= s->room) return true;
    size_t larger = bytes + bytes / 2 + 4096;
    if (s->mapped) return grow_file(s, larger, place->directory, err);
    if (place->directory && larger > place->memory) return move_out(s, larger, place->directory, err);
    void *data = realloc(s->data, larger);
    if (!data) return hw_fail(err, "this machine has not enough memory for the corpus");
    s->data = data;
    s->room = larger;
    return true;
}

void hw_store_release(const hw_store *s)
{
    if (s->mapped) madvise(s->data, s->room, MADV_DONTNEED);
}

void hw_store_free(hw_store *s)
{
    if (s->mapped) {
        munmap(s->data, s->room);
        close(s->file);
    } else {
        free(s->data);
    }
    *s = (hw_store){0};
}
