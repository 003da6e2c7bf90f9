/* Files added to whole or not at all, mapped files, directories. Those written whole stand in atomic.c. Messages name the
 * path that the user knows. */
#include <headwise/base.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool hw_append_whole(int file, const char *path, const void *bytes, size_t size, hw_error *err)
{
    const off_t before = lseek(file, 0, SEEK_END);
    size_t done = 0;
    ssize_t part = 1; /* a disk that fills up takes the beginning */
    for (; done < size && part > 0; done += part > 0 ? (size_t)part : 0)
        part = write(file, (const char *)bytes + done, size - done);
    if (done == size) return true;
    int number = errno;
    if (ftruncate(file, before)) number = errno;
    return hw_fail(err, "%s: cannot be written: %s", path, strerror(number));
}

/* ---- mapped files ------------------------------------------------------------------------------------------------ */

bool hw_map_open(hw_map *map, const char *path, hw_error *err)
{
    *map = (hw_map){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO is refused below, not waited for */
    struct stat status;
    const char *reason = NULL;
    if (fd < 0 || fstat(fd, &status)) reason = strerror(errno);
    else if (S_ISDIR(status.st_mode)) reason = "it is a directory; a file is needed";
    else if (!S_ISREG(status.st_mode)) reason = "it is not a regular file";
    else if ((uint64_t)status.st_size > PTRDIFF_MAX) reason = "it is too large";
    else if (status.st_size > 0) {
        map->base = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map->base == MAP_FAILED) reason = strerror(errno);
    }
    if (fd >= 0) close(fd);
    if (reason) {
        *map = (hw_map){0};
        return hw_fail(err, "%s: cannot be read: %s", path, reason);
    }
    map->data = map->base;
    map->size = (size_t)status.st_size;
    return true;
}

void hw_map_forget(const hw_map *map, const void *data, size_t bytes)
{
    size_t at = (size_t)((const uint8_t *)data - (const uint8_t *)map->data);
    HW_CHECK(at <= map->size && bytes <= map->size - at, "a part that is not of this map");
    hw_memory_forget((uint8_t *)map->base + at, bytes); /* when it is read again, it comes from the file */
}

void hw_map_close(hw_map *map)
{
    if (map->base) munmap(map->base, map->size);
    *map = (hw_map){0};
}

/* ---- directories ------------------------------------------------------------------------------------------------- */

/* Those that were made, the last first, and by which process, for a child inherits the list. Nothing is taken out, so a
 * signal's handler finds it whole; what another process has taken since has no maker any more. */
typedef struct made {
    struct made *before;
    _Atomic pid_t maker;
    char path[];
} made;
static _Atomic(made *) last_made;

/* No signal comes between a directory and its place in the list. -> errno or 0 */
static int make_one(const char *path)
{
    sigset_t all, before;
    made *new = malloc(sizeof *new + strlen(path) + 1);
    HW_CHECK(new, "out of memory");
    new->maker = getpid();
    strcpy(new->path, path);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int number = mkdir(path, 0777) ? errno : 0;
    new->before = atomic_load(&last_made);
    while (!number && !atomic_compare_exchange_weak(&last_made, &new->before, new)) {
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (number) free(new);
    return number;
}

void hw_directories_remove_empty(void)
{
    for (const made *m = atomic_load(&last_made); m; m = m->before)
        if (m->maker == getpid()) rmdir(m->path);
}

int hw_directory_lock(const char *path, int *reason)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *reason = fd < 0 || flock(fd, LOCK_EX | LOCK_NB) ? errno : 0;
    for (made *m = atomic_load(&last_made); m && *reason == EWOULDBLOCK; m = m->before)
        if (!strcmp(m->path, path)) m->maker = 0;
    return fd;
}

bool hw_directory_make(const char *path, hw_error *err)
{
    char part[4096];
    size_t length = strlen(path);
    if (!length || length >= sizeof part)
        return hw_fail(err, "%s: the directory cannot be made: %s", path, strerror(length ? ENAMETOOLONG : ENOENT));
    for (size_t i = 1; i <= length; i++) {
        if (path[i] && path[i] != '/') continue;
        memcpy(part, path, i);
        part[i] = 0;
        struct stat status;
        int number = make_one(part);
        if (!number || (stat(part, &status) == 0 && S_ISDIR(status.st_mode))) continue;
        bool above = i < length; /* it is a directory on the way that is at fault */
        return hw_fail(err, "%s: the directory cannot be made: %s%s%s", path, above ? part : "", above ? ": " : "",
                       number == EEXIST ? "a file of that name is in the way" : strerror(number));
    }
    return true;
}

bool hw_directory_can_be_made(const char *path, hw_error *err)
{
    char part[4096];
    struct stat status;
    size_t length = strlen(path);
    if (!length || length >= sizeof part)
        return hw_fail(err, "%s: the directory cannot be made: %s", path, strerror(length ? ENAMETOOLONG : ENOENT));
    strcpy(part, path);
    int number;
    while ((number = stat(part, &status) ? errno : 0) == ENOTDIR || (number == ENOENT && lstat(part, &status))) {
        char *slash = strrchr(part, '/'); /* up to what is there */
        if (!slash) strcpy(part, ".");
        else slash[slash == part] = 0;
    }
    bool directory = !number && S_ISDIR(status.st_mode), above = strcmp(part, path) != 0;
    bool in_the_way = !directory && (!number || number == ENOENT); /* ENOENT: a link that leads nowhere */
    if (directory && access(part, W_OK | X_OK)) number = errno;
    else if (directory) return true;
    if (directory && !above)
        return hw_fail(err, "%s: nothing can be written into this directory: %s", path, strerror(number));
    return hw_fail(err, "%s: the directory cannot be made: %s%s%s", path, above ? part : "", above ? ": " : "",
                   in_the_way ? "a file of that name is in the way" : strerror(number));
}

bool hw_file_exists(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0;
}
