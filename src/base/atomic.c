/* Files written whole or not at all.
 *
 * An atomic file is written beside its place as .NAME.headwise-XXXXXX.tmp, synced, renamed over it, and the directory
 * is synced: after a kill or a power cut at any moment the place has the old file or the new one, never a piece. The
 * temporary is a file of its own for each writer (O_EXCL), who holds a lock on it, so that two programs do not mix
 * their bytes, and what a killed one has left can be told from what is being written. All that are open stand in a
 * list, for hw_atomic_remove_all. Messages name the path that the user knows. */
#include <headwise/base.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK ".headwise-"
#define END ".tmp"
#define LETTERS "0123456789abcdefghijklmnopqrstuvwxyz"
enum { PATH = sizeof((hw_atomic *)0)->path, RANDOM = 6, ADDED = sizeof "." MARK END - 1 + RANDOM, LINKS = 40 };

/* ---- those that are open ----------------------------------------------------------------------------------------- */

/* No signal comes while a thread changes the list, or a file from temporary to real: a handler finds both agreeing. */
static hw_atomic *files;
static atomic_flag busy = ATOMIC_FLAG_INIT;

static void enter(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, before);
    while (atomic_flag_test_and_set(&busy)) sched_yield();
}

static void leave(const sigset_t *before)
{
    atomic_flag_clear(&busy);
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static void forget(const hw_atomic *file)
{
    for (hw_atomic **at = &files; *at; at = &(*at)->next) {
        if (*at != file) continue;
        *at = file->next;
        break;
    }
}

void hw_atomic_remove_all(void)
{
    while (atomic_flag_test_and_set(&busy)) sched_yield(); /* and it stays so: nothing new is begun */
    for (const hw_atomic *file = files; file; file = file->next) unlink(file->temporary);
    hw_directories_remove_empty();
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static char *name_in(const char *path)
{
    const char *slash = strrchr(path, '/');
    return (char *)(uintptr_t)(slash ? slash + 1 : path);
}

static void directory_of(const char *path, char directory[PATH])
{
    int length = (int)(name_in(path) - path);
    snprintf(directory, PATH, "%.*s", length ? length : 1, length ? path : ".");
}

/* So much of a name goes into that of its temporary file: what a directory takes, and whole characters. */
static int length_kept(const char *name, const char *directory)
{
    long most = pathconf(directory, _PC_NAME_MAX);
    size_t length = strlen(name), room = (size_t)(most > ADDED ? most : 255) - ADDED;
    if (length <= room) return (int)length;
    while (room > 0 && (name[room] & 0xc0) == 0x80) room--;
    return (int)room;
}

/* Is it a temporary file of ours: of this name, or of any where that is NULL? */
static bool is_temporary(const char *entry, const char *name, int kept)
{
    size_t length = strlen(entry);
    if (length <= ADDED || *entry != '.') return false;
    const char *end = entry + length - (sizeof END - 1), *random = end - RANDOM, *mark = random - (sizeof MARK - 1);
    if (strcmp(end, END) || strncmp(mark, MARK, sizeof MARK - 1)) return false;
    for (const char *c = random; c < end; c++)
        if (!strchr(LETTERS, *c)) return false;
    return !name || (mark - entry - 1 == kept && !strncmp(entry + 1, name, (size_t)kept));
}

/* Where this program has this file open: the number in /dev/fd/N, /proc/self/fd/N; else -1. */
static int own_descriptor(const char *path)
{
    char directory[PATH], own[64];
    directory_of(path, directory);
    char *real = realpath(directory, NULL);
    snprintf(own, sizeof own, "/proc/%ld/fd", (long)getpid());
    bool is_own = real && !strcmp(real, own);
    free(real);
    const char *name = name_in(path);
    return is_own && *name && strspn(name, "0123456789") == strlen(name) ? atoi(name) : -1;
}

/* The path that all links at the end of this one lead to, whether anything is there or not. -> false and errno; *own is
 * an open file of this program, or -1. */
static bool follow(const char *path, char target[PATH], int *own)
{
    char link[PATH];
    snprintf(target, PATH, "%s", path);
    for (int links = 0; links < LINKS; links++) {
        *own = own_descriptor(target);
        ssize_t length = *own >= 0 ? -1 : readlink(target, link, sizeof link - 1);
        if (length < 0) return true; /* what else is wrong is found when it is opened */
        link[length] = 0;
        char *to = *link == '/' ? target : name_in(target);
        size_t room = (size_t)(target + PATH - to);
        if ((size_t)length >= room) {
            errno = ENAMETOOLONG;
            return false;
        }
        memcpy(to, link, (size_t)length + 1);
    }
    errno = ELOOP;
    return false;
}

/* ---- what was left over ------------------------------------------------------------------------------------------ */

/* Whoever still writes holds the lock. */
static void remove_left(int directory, const char *entry)
{
    struct stat status;
    int fd = openat(directory, entry, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(directory, entry, 0);
    close(fd);
}

static void clean(const char *path, const char *name, int kept)
{
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (is_temporary(entry->d_name, name, kept)) remove_left(dirfd(directory), entry->d_name);
    if (directory) closedir(directory);
}

void hw_atomic_clean(const char *directory) { clean(directory, NULL, 0); }

/* ---- begin ------------------------------------------------------------------------------------------------------- */

static void random_name(int attempt, char text[RANDOM + 1])
{
    static const char letters[] = LETTERS;
    uint32_t counter[4] = {(uint32_t)getpid(), (uint32_t)attempt, 0, 0}, bits[4];
    double now = hw_seconds();
    uint64_t key;
    memcpy(&key, &now, sizeof key);
    hw_philox(key, counter, bits);
    for (int i = 0; i < RANDOM; i++) text[i] = letters[(bits[i / 2] >> (i % 2 * 16) & 0xffff) % (sizeof letters - 1)];
    text[RANDOM] = 0;
}

/* Makes the temporary file and enters it into the list -> its number; -1 and errno. */
static int create_once(hw_atomic *file)
{
    sigset_t before;
    enter(&before);
    int fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), number = errno;
    if (fd >= 0) {
        file->next = files;
        files = file;
    }
    leave(&before);
    errno = number;
    return fd;
}

/* Takes the file out of the list, its temporary being gone, or going here. */
static void strike(hw_atomic *file, bool remove)
{
    sigset_t before;
    if (!*file->temporary) return;
    enter(&before);
    if (remove) unlink(file->temporary);
    forget(file);
    leave(&before);
    *file->temporary = 0;
}

/* The temporary file under a name that nobody has, locked -> its number; -1 and errno. */
static int create(hw_atomic *file, const char *directory)
{
    const char *name = name_in(file->target);
    char random[RANDOM + 1];
    struct stat status;
    int kept = length_kept(name, directory), before = (int)(name - file->target);
    clean(directory, name, kept);
    for (int attempt = 0; attempt < 1000; attempt++) {
        random_name(attempt, random);
        if (snprintf(file->temporary, PATH, "%.*s.%.*s" MARK "%s" END, before, file->target, kept, name, random) >=
            PATH) {
            errno = ENAMETOOLONG;
            break;
        }
        int fd = create_once(file);
        if (fd < 0 && errno == EEXIST) continue;
        if (fd < 0) break;
        flock(fd, LOCK_EX); /* where a file system has no locks, nobody cleans up either */
        if (fstat(fd, &status) || status.st_nlink > 0) return fd;
        close(fd); /* somebody who cleans up was quicker than the lock */
        strike(file, false);
    }
    *file->temporary = 0;
    return -1;
}

/* Opens what is written straight into: an open file of this program where it stands, or a pipe or device. */
static int open_in_place(const char *target, int own)
{
    if (own < 0) return open(target, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (own == STDOUT_FILENO) fflush(stdout); /* what was printed before comes before */
    int flags = fcntl(own, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) return fcntl(own, F_DUPFD_CLOEXEC, 3);
    errno = EBADF;
    return -1;
}

/* NULL where the stream is open, else the reason. */
static const char *open_stream(hw_atomic *file, bool output)
{
    struct stat status;
    int own, fd;
    char directory[PATH];
    if (!follow(file->path, file->target, &own)) return strerror(errno);
    bool there = stat(file->path, &status) == 0;
    if (!there && errno != ENOENT) return strerror(errno);
    if (there && S_ISDIR(status.st_mode)) return "it is a directory";
    if (there && (own >= 0 || !S_ISREG(status.st_mode))) {
        bool goes = own >= 0 || S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode);
        if (!output || !goes) return "it is not a regular file";
        fd = open_in_place(file->target, own);
    } else {
        directory_of(file->target, directory);
        fd = create(file, directory);
        if (fd >= 0 && there) fchmod(fd, status.st_mode & 0777);
    }
    file->stream = fd < 0 ? NULL : fdopen(fd, "w");
    if (file->stream) return NULL;
    const char *reason = strerror(errno);
    if (fd >= 0) close(fd);
    strike(file, true);
    return reason;
}

static bool begin(hw_atomic *file, const char *path, bool output, hw_error *err)
{
    file->stream = NULL;
    *file->target = *file->temporary = 0;
    bool fits = strlen(path) < PATH;
    if (fits) strcpy(file->path, path);
    const char *reason = !*path ? "an empty name" : fits ? open_stream(file, output) : strerror(ENAMETOOLONG);
    if (!reason) return true;
    bool leads = *file->target && strcmp(file->target, path);
    return hw_fail(err, "%s: cannot be written: %s%s%s%s", path, leads ? "it leads to " : "", leads ? file->target : "",
                   leads ? ": " : "", reason);
}

bool hw_atomic_begin(hw_atomic *file, const char *path, hw_error *err) { return begin(file, path, false, err); }

bool hw_output_begin(hw_atomic *file, const char *path, hw_error *err) { return begin(file, path, true, err); }

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* The entry in the directory. File systems that cannot sync one say EINVAL and the like; only a failing disk counts. */
static int sync_directory_of(const char *path)
{
    char directory[PATH];
    directory_of(path, directory);
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return 0;
    int number = fsync(fd) && errno == EIO ? EIO : 0;
    close(fd);
    return number;
}

/* stdio remembers that a write failed, but not why; one byte more tells. -> errno or 0 */
static int finish_writing(const hw_atomic *file)
{
    HW_CHECK(file->stream, "an atomic file is committed that was not begun");
    errno = 0;
    if (fflush(file->stream)) return errno;
    if (ferror(file->stream)) return write(fileno(file->stream), "", 1) > 0 ? EIO : errno;
    return *file->temporary && fsync(fileno(file->stream)) ? errno : 0;
}

/* The lock goes only when the stream is closed, after the file has its real name. -> errno or 0 */
static int put_in_place(hw_atomic *file)
{
    sigset_t before;
    if (!*file->temporary) return 0;
    enter(&before);
    int number = rename(file->temporary, file->target) ? errno : 0;
    if (!number) forget(file);
    leave(&before);
    if (number) return number;
    *file->temporary = 0;
    return sync_directory_of(file->target);
}

/* Waits while another program puts its files in place, which takes no time -> the lock, -1 where there are none;
 * *number is EWOULDBLOCK where that one does not end. */
static int lock_directory_of(const char *path, int *number)
{
    char directory[PATH];
    directory_of(path, directory);
    int reason, fd = hw_directory_lock(directory, &reason);
    for (int i = 0; i < 200 && reason == EWOULDBLOCK; i++) {
        usleep(10000);
        close(fd);
        fd = hw_directory_lock(directory, &reason);
    }
    if (reason == EWOULDBLOCK) *number = reason;
    return fd;
}

bool hw_atomic_commit_all(hw_atomic *const *all, int count, hw_error *err)
{
    int number = 0, lock = -1;
    const hw_atomic *at = NULL;
    for (int i = 0; i < count && !number; i++) number = finish_writing(at = all[i]);
    if (!number && count > 1) lock = lock_directory_of((at = all[0])->target, &number);
    for (int i = 0; i < count && !number; i++) {
        at = all[i];
        number = put_in_place(all[i]);
    }
    if (lock >= 0) close(lock);
    for (int i = 0; i < count; i++) hw_atomic_abandon(all[i]);
    if (!number) return true;
    return hw_fail(err, "%s: cannot be written whole: %s", at->path,
                   number == EWOULDBLOCK ? "another process holds this directory" : strerror(number));
}

bool hw_atomic_commit(hw_atomic *file, hw_error *err) { return hw_atomic_commit_all(&file, 1, err); }

void hw_atomic_abandon(hw_atomic *file)
{
    if (!file->stream) return;
    strike(file, true);
    fclose(file->stream);
    file->stream = NULL;
}
