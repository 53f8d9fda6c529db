/* A test-only preload library that knows what a disk would still have after a loss of power.
 *
 * It watches the files below SHIM_DIR and appends one line per event to SHIM_EVENTS:
 *   C path        created or emptied: nothing of it is durable
 *   S length path synced up to that length
 *   T length path cut to that length
 *   R from\tto    renamed
 *   U path        removed
 * The length of S is taken before the sync begins, so bytes written meanwhile do not count.
 *
 * Each watched call is a step. SHIM_KILL_AT=n ends the process with SIGKILL in place of the n-th step;
 * SHIM_FAIL_AT=n lets it fail with SHIM_ERRNO, and SHIM_FAIL_COUNT steps from there on.
 * SHIM_KILL_SYNC=n ends it in place of the n-th sync of a write-ahead log that has something to sync.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES_MAX 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *paths[FILES_MAX];
static const char *dir;
static size_t dir_length;
static int events = -1;
static long step, kill_at, fail_at, fail_count, fail_errno;
static long wal_sync, kill_sync;
static long long synced[FILES_MAX];

static long number(const char *name) {
    const char *value = getenv(name);
    return value ? atol(value) : 0;
}

__attribute__((constructor)) static void begin(void) {
    dir = getenv("SHIM_DIR");
    const char *path = getenv("SHIM_EVENTS");
    if (!dir || !path) return;
    dir_length = strlen(dir);
    kill_at = number("SHIM_KILL_AT");
    kill_sync = number("SHIM_KILL_SYNC");
    fail_at = number("SHIM_FAIL_AT");
    fail_count = number("SHIM_FAIL_COUNT");
    fail_errno = number("SHIM_ERRNO");
    events = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static int watched(const char *path) {
    return events >= 0 && path && strncmp(path, dir, dir_length) == 0;
}

static void event(const char *format, ...) {
    char line[2 * PATH_MAX + 64];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length > 0) syscall(SYS_write, events, line, (size_t)length);
}

static void end(void) {
    kill(getpid(), SIGKILL);
    pause();
}

/* Nonzero if the step must fail: errno is set. */
static int enter(void) {
    long now = __atomic_add_fetch(&step, 1, __ATOMIC_SEQ_CST);
    if (kill_at && now >= kill_at) end();
    if (fail_at && now >= fail_at && now < fail_at + fail_count) {
        errno = (int)fail_errno;
        return 1;
    }
    return 0;
}

/* The path of a descriptor, copied; NULL when it is not watched. */
static char *path_of(int fd, char *copy) {
    char *found = NULL;
    if (fd < 0 || fd >= FILES_MAX) return NULL;
    pthread_mutex_lock(&lock);
    if (paths[fd]) found = strncpy(copy, paths[fd], PATH_MAX);
    pthread_mutex_unlock(&lock);
    return found;
}

static void set_path(int fd, const char *path) {
    if (fd < 0 || fd >= FILES_MAX) return;
    pthread_mutex_lock(&lock);
    free(paths[fd]);
    paths[fd] = path ? strdup(path) : NULL;
    synced[fd] = 0;
    pthread_mutex_unlock(&lock);
}

static long long size_of(int fd) {
    struct stat stat;
    return fstat(fd, &stat) == 0 ? (long long)stat.st_size : 0;
}

static int open_watched(const char *path, int flags, mode_t mode) {
    int is_new = 0;
    if (watched(path) && (flags & (O_CREAT | O_TRUNC))) {
        struct stat before;
        is_new = (flags & O_TRUNC) || stat(path, &before) != 0;
        if (is_new && enter()) return -1;
    }
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0 && watched(path)) {
        set_path(fd, path);
        if (is_new) event("C %s\n", path);
    }
    return fd;
}

int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & O_CREAT) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return open_watched(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & O_CREAT) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return open_watched(path, flags | O_LARGEFILE, mode);
}

int close(int fd) {
    set_path(fd, NULL);
    return (int)syscall(SYS_close, fd);
}

ssize_t write(int fd, const void *bytes, size_t count) {
    char copy[PATH_MAX];
    if (path_of(fd, copy) && enter()) return -1;
    return syscall(SYS_write, fd, bytes, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    char copy[PATH_MAX];
    if (path_of(fd, copy) && enter()) return -1;
    return syscall(SYS_pwrite64, fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) { return pwrite(fd, bytes, count, at); }

/* Counts the syncs of write-ahead logs; the one that is asked for does not come to pass. */
static void enter_wal_sync(int fd, const char *path, long long length) {
    size_t end_at = strlen(path);
    if (!kill_sync || end_at < 4 || strcmp(path + end_at - 4, ".log") != 0 || length <= synced[fd]) return;
    synced[fd] = length;
    if (__atomic_add_fetch(&wal_sync, 1, __ATOMIC_SEQ_CST) >= kill_sync) end();
}

static int sync_watched(int fd, long call) {
    char copy[PATH_MAX];
    char *path = path_of(fd, copy);
    long long length = path ? size_of(fd) : 0;
    if (path) enter_wal_sync(fd, path, length);
    if (path && enter()) return -1;
    int outcome = (int)syscall(call, fd);
    if (path && outcome == 0) event("S %lld %s\n", length, path);
    return outcome;
}

int fsync(int fd) { return sync_watched(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_watched(fd, SYS_fdatasync); }

int ftruncate(int fd, off_t length) {
    char copy[PATH_MAX];
    char *path = path_of(fd, copy);
    if (path && enter()) return -1;
    int outcome = (int)syscall(SYS_ftruncate, fd, length);
    if (path && outcome == 0) event("T %lld %s\n", (long long)length, path);
    return outcome;
}

int ftruncate64(int fd, off64_t length) { return ftruncate(fd, length); }

int fallocate(int fd, int mode, off_t at, off_t length) {
    char copy[PATH_MAX];
    if (path_of(fd, copy) && enter()) return -1;
    return (int)syscall(SYS_fallocate, fd, mode, at, length);
}

int rename(const char *from, const char *to) {
    if (watched(to) && enter()) return -1;
    int outcome = (int)syscall(SYS_rename, from, to);
    if (watched(to) && outcome == 0) event("R %s\t%s\n", from, to);
    return outcome;
}

int unlink(const char *path) {
    if (watched(path) && enter()) return -1;
    int outcome = (int)syscall(SYS_unlink, path);
    if (watched(path) && outcome == 0) event("U %s\n", path);
    return outcome;
}
