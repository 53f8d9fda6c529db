/* The shim of disk.c for a whole node: what it sends to its clients is a step too.
 *
 * SHIM_PORT=n watches the connections that are accepted at that port. SHIM_BROKER_PORT=n watches those that are made to
 * that port: each request that changes something there is a step, and so is its answer, which the broker has given
 * by then. What must fail does so with ECONNRESET. Three more lines in SHIM_EVENTS:
 *   P step        a reply, and which step it was
 *   K key step    a request to a broker by its API key, or its answer, and which step it was
 *   E steps       the process ends by itself after so many steps
 */
#include "disk.c"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define REPLY "reply"
#define BROKER "broker"

/* API keys of Kafka's protocol. */
enum { PRODUCE = 0, CREATE_TOPICS = 19, DELETE_RECORDS = 21, INIT_PRODUCER_ID = 22, ADD_PARTITIONS = 24, END_TXN = 26 };

/* Of each connection to a broker: the requests that count and are not answered yet, and the last one's key. */
static int awaited[FILES_MAX], asked[FILES_MAX];

__attribute__((destructor)) static void finish(void) {
    if (events >= 0) event("E %ld\n", __atomic_load_n(&step, __ATOMIC_SEQ_CST));
}

static int is(int fd, const char *what) {
    char copy[PATH_MAX];
    return path_of(fd, copy) && strcmp(copy, what) == 0;
}

static int is_reply(int fd) { return is(fd, REPLY); }

static int changes_something(int key) {
    return key == PRODUCE || key == CREATE_TOPICS || key == DELETE_RECORDS || key == INIT_PRODUCER_ID ||
           key == ADD_PARTITIONS || key == END_TXN;
}

static int enter_talk(int key) {
    event("K %d %ld\n", key, __atomic_load_n(&step, __ATOMIC_SEQ_CST) + 1);
    if (!enter()) return 0;
    errno = ECONNRESET;
    return 1;
}

/* Nonzero if a request to a broker must fail. Each is sent from its beginning: its length, then its key. */
static int enter_request(int fd, const struct msghdr *message) {
    if (events < 0 || !is(fd, BROKER) || message->msg_iovlen == 0 || message->msg_iov[0].iov_len < 6) return 0;
    const unsigned char *bytes = message->msg_iov[0].iov_base;
    int key = bytes[4] << 8 | bytes[5];
    if (!changes_something(key)) return 0;
    asked[fd] = key;
    __atomic_add_fetch(&awaited[fd], 1, __ATOMIC_SEQ_CST);
    return enter_talk(key);
}

/* Nonzero if an answer of a broker must not be read. */
static int enter_answer(int fd) {
    char byte;
    if (events < 0 || fd < 0 || fd >= FILES_MAX || __atomic_load_n(&awaited[fd], __ATOMIC_SEQ_CST) == 0) return 0;
    if (!is(fd, BROKER) || syscall(SYS_recvfrom, fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT, NULL, NULL) <= 0) return 0;
    __atomic_sub_fetch(&awaited[fd], 1, __ATOMIC_SEQ_CST);
    return enter_talk(asked[fd]);
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
    if (enter_reply(fd) || enter_request(fd, message)) return -1;
    return syscall(SYS_sendmsg, fd, message, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
    if (enter_answer(fd)) return -1;
    return syscall(SYS_recvmsg, fd, message, flags);
}

int connect(int fd, const struct sockaddr *address, socklen_t length) {
    const struct sockaddr_in *to = (const struct sockaddr_in *)address;
    if (events >= 0 && fd >= 0 && fd < FILES_MAX && to->sin_family == AF_INET &&
        ntohs(to->sin_port) == number("SHIM_BROKER_PORT")) {
        set_path(fd, BROKER);
        awaited[fd] = 0;
    }
    return (int)syscall(SYS_connect, fd, address, length);
}

/* Of a file below SHIM_DIR it is a step as any write. */
ssize_t writev(int fd, const struct iovec *pieces, int count) {
    char copy[PATH_MAX];
    if (is_reply(fd) ? enter_reply(fd) : path_of(fd, copy) && enter()) return -1;
    return syscall(SYS_writev, fd, pieces, count);
}
