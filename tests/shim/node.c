/* The shim of disk.c for a whole node: what it sends to its clients is a step too.
 *
 * SHIM_PORT=n watches the connections that are accepted at that port. A reply that must fail does so with
 * ECONNRESET. Two more lines in SHIM_EVENTS:
 *   P step        a reply, and which step it was
 *   E steps       the process ends by itself after so many steps
 */
#include "disk.c"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define REPLY "reply"

__attribute__((destructor)) static void finish(void) {
    if (events >= 0) event("E %ld\n", __atomic_load_n(&step, __ATOMIC_SEQ_CST));
}

static int is_reply(int fd) {
    char copy[PATH_MAX];
    return path_of(fd, copy) && strcmp(copy, REPLY) == 0;
}

/* Nonzero if the reply must fail: errno is set. */
static int enter_reply(int fd) {
    if (!is_reply(fd)) return 0;
    event("P %ld\n", __atomic_load_n(&step, __ATOMIC_SEQ_CST) + 1);
    if (!enter()) return 0;
    errno = ECONNRESET;
    return 1;
}

int accept4(int listener, struct sockaddr *address, socklen_t *length, int flags) {
    int fd = (int)syscall(SYS_accept4, listener, address, length, flags);
    struct sockaddr_in own;
    socklen_t own_length = sizeof own;
    if (fd < 0 || events < 0 || getsockname(fd, (struct sockaddr *)&own, &own_length) != 0) return fd;
    if (own.sin_family == AF_INET && ntohs(own.sin_port) == number("SHIM_PORT")) set_path(fd, REPLY);
    return fd;
}

ssize_t send(int fd, const void *bytes, size_t count, int flags) {
    if (enter_reply(fd)) return -1;
    return syscall(SYS_sendto, fd, bytes, count, flags, NULL, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    if (enter_reply(fd)) return -1;
    return syscall(SYS_sendmsg, fd, message, flags);
}

/* Of a file below SHIM_DIR it is a step as any write. */
ssize_t writev(int fd, const struct iovec *pieces, int count) {
    char copy[PATH_MAX];
    if (is_reply(fd) ? enter_reply(fd) : path_of(fd, copy) && enter()) return -1;
    return syscall(SYS_writev, fd, pieces, count);
}
