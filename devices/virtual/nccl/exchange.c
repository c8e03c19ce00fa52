#define _GNU_SOURCE /* memfd_create, fallocate */
#include "exchange.h"
#include "autotune/base/file_range.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Distance between the starts of the logs, in a file that is mostly holes; no log grows that large. */
#define LOG_SPAN_BYTES ((uint64_t)1 << 40)

enum { STATE_ABSENT, STATE_PRESENT, STATE_LEFT };

enum { PUNCH_BYTES = 16 << 20 };

struct row {
    int32_t state, pid, gpu;
    uint64_t count[EXCHANGE_CHANNELS];
    uint64_t written_bytes;              /* length of its own log */
    uint64_t taken_bytes[EXCHANGE_RANKS]; /* how much of the other ranks' logs it has read; that much may be
                                           * discarded */
};

struct head {
    uint64_t proof;
    struct row rows[EXCHANGE_RANKS];
};

struct record {
    uint64_t number;
    uint32_t channel, bytes; /* size of the message that follows */
};

struct plim_exchange {
    struct plim_exchange *older;
    struct plim_exchange_place place;
    struct head *head;
    int fd;
    int references;
    bool is_new; /* created in this process; the first open takes over the creator's reference */
    uint64_t punched_bytes[EXCHANGE_RANKS];
};

/* A process opens each exchange only once: closing a file releases all of the process's locks on it. */
static struct plim_exchange *exchanges;
static pthread_mutex_t exchanges_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t load(const uint64_t *value) { return __atomic_load_n(value, __ATOMIC_ACQUIRE); }
static void store(uint64_t *to, uint64_t value) { __atomic_store_n(to, value, __ATOMIC_RELEASE); }

static uint64_t log_begin(int rank) { return LOG_SPAN_BYTES * (uint64_t)(rank + 1); }

/* --- making and finding ----------------------------------------------------------------------- */

static void destroy(struct plim_exchange *exchange)
{
    if (exchange->head) munmap(exchange->head, sizeof(*exchange->head));
    if (exchange->fd >= 0) close(exchange->fd);
    free(exchange);
}

static struct plim_exchange *adopt(int fd)
{
    struct plim_exchange *exchange = calloc(1, sizeof(*exchange));
    if (!exchange) {
        close(fd);
        return NULL;
    }
    exchange->fd = fd;
    exchange->references = 1;
    void *memory =
        mmap(NULL, sizeof(struct head), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory != MAP_FAILED) {
        exchange->head = memory;
        return exchange;
    }
    destroy(exchange);
    return NULL;
}

static void enlist(struct plim_exchange *exchange)
{
    exchange->older = exchanges;
    exchanges = exchange;
}

struct plim_exchange *plim_exchange_create(struct plim_exchange_place *place)
{
    struct plim_exchange *exchange = NULL;
    uint64_t proof;
    memset(place, 0, sizeof(*place));
    int fd = memfd_create("plimsoll-exchange", MFD_CLOEXEC);
    if (fd < 0) return NULL;
    if (ftruncate(fd, sizeof(struct head)) || getrandom(&proof, sizeof(proof), 0) < 0) close(fd);
    else exchange = adopt(fd);
    if (!exchange) return NULL;
    snprintf(place->path, sizeof(place->path), "/proc/%ld/fd/%d", (long)getpid(), fd);
    place->proof = exchange->head->proof = proof | 1;
    exchange->place = *place;
    exchange->is_new = true;
    pthread_mutex_lock(&exchanges_lock);
    enlist(exchange);
    pthread_mutex_unlock(&exchanges_lock);
    return exchange;
}

static struct plim_exchange *open_other(const struct plim_exchange_place *place)
{
    struct stat st;
    int fd = open(place->path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return NULL;
    if (fstat(fd, &st) || st.st_size < (off_t)sizeof(struct head)) {
        close(fd);
        return NULL;
    }
    struct plim_exchange *exchange = adopt(fd);
    if (!exchange) return NULL;
    exchange->place = *place;
    if (exchange->head->proof == place->proof) return exchange;
    destroy(exchange);
    return NULL;
}

struct plim_exchange *plim_exchange_open(const struct plim_exchange_place *place)
{
    pthread_mutex_lock(&exchanges_lock);
    struct plim_exchange *exchange = exchanges;
    while (exchange && exchange->place.proof != place->proof) exchange = exchange->older;
    if (exchange && exchange->is_new) exchange->is_new = false;
    else if (exchange) exchange->references++;
    else if ((exchange = open_other(place))) enlist(exchange);
    pthread_mutex_unlock(&exchanges_lock);
    return exchange;
}

void plim_exchange_close(struct plim_exchange *exchange)
{
    if (!exchange) return;
    pthread_mutex_lock(&exchanges_lock);
    bool is_last = --exchange->references == 0;
    if (is_last) {
        struct plim_exchange **link = &exchanges;
        while (*link != exchange) link = &(*link)->older;
        *link = exchange->older;
    }
    pthread_mutex_unlock(&exchanges_lock);
    if (is_last) destroy(exchange);
}

/* --- presence of ranks ------------------------------------------------------------------------ */

static struct flock byte_of(int rank)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
}

bool plim_exchange_join(struct plim_exchange *exchange, int rank, int gpu)
{
    struct row *row = &exchange->head->rows[rank];
    struct flock lock = byte_of(rank);
    int32_t unused = 0;
    if (fcntl(exchange->fd, F_SETLK, &lock) ||
        !__atomic_compare_exchange_n(&row->pid, &unused, (int32_t)getpid(), false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return false;
    row->gpu = gpu;
    __atomic_store_n(&row->state, STATE_PRESENT, __ATOMIC_RELEASE);
    return true;
}

void plim_exchange_leave(struct plim_exchange *exchange, int rank)
{
    __atomic_store_n(&exchange->head->rows[rank].state, STATE_LEFT, __ATOMIC_RELEASE);
}

enum plim_presence plim_exchange_presence(struct plim_exchange *exchange, int rank)
{
    struct row *row = &exchange->head->rows[rank];
    struct flock lock = byte_of(rank);
    int state = __atomic_load_n(&row->state, __ATOMIC_ACQUIRE);
    if (state == STATE_ABSENT) return PLIM_ABSENT;
    if (state == STATE_LEFT) return PLIM_LEFT;
    /* A process cannot see its own locks. */
    if (row->pid == getpid()) return PLIM_PRESENT;
    if (fcntl(exchange->fd, F_GETLK, &lock) || lock.l_type != F_UNLCK) return PLIM_PRESENT;
    /* It may have left in the meantime. */
    state = __atomic_load_n(&row->state, __ATOMIC_ACQUIRE);
    return state == STATE_LEFT ? PLIM_LEFT : PLIM_DEAD;
}

int plim_exchange_gpu(struct plim_exchange *exchange, int rank)
{
    return exchange->head->rows[rank].gpu;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* Frees the part of a log that all ranks have read. */
static void punch(struct plim_exchange *exchange, int rank)
{
    uint64_t begin = exchange->punched_bytes[rank];
    uint64_t end = exchange->head->rows[rank].written_bytes;
    if (end - begin < PUNCH_BYTES) return;
    for (int i = 0; i < EXCHANGE_RANKS; i++) {
        struct row *row = &exchange->head->rows[i];
        uint64_t taken = load(&row->taken_bytes[rank]);
        if (__atomic_load_n(&row->state, __ATOMIC_ACQUIRE) == STATE_PRESENT && taken < end)
            end = taken;
    }
    if (end - begin < PUNCH_BYTES) return;
    fallocate(exchange->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              (off_t)(log_begin(rank) + begin), (off_t)(end - begin));
    exchange->punched_bytes[rank] = end;
}

bool plim_exchange_post(struct plim_exchange *exchange, int rank, int channel, const void *message,
                        size_t bytes)
{
    struct row *row = &exchange->head->rows[rank];
    struct record record = {row->count[channel], (uint32_t)channel, (uint32_t)bytes};
    uint64_t at = log_begin(rank) + row->written_bytes;
    bool written = bytes <= EXCHANGE_MESSAGE_BYTES;
    if (bytes) {
        written = written && plim_file_write(exchange->fd, (int64_t)(at + sizeof(record)), message, bytes) &&
                  plim_file_write(exchange->fd, (int64_t)at, &record, sizeof(record));
        if (written) store(&row->written_bytes, row->written_bytes + sizeof(record) + bytes);
        punch(exchange, rank);
    }
    store(&row->count[channel], record.number + 1);
    return written;
}

uint64_t plim_exchange_count(struct plim_exchange *exchange, int rank, int channel)
{
    return load(&exchange->head->rows[rank].count[channel]);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Reads the next message. Returns false if there is none, or if it cannot be read now and is to be tried again
 * later. */
static bool receive_next(struct plim_inbox *inbox, int from)
{
    struct plim_exchange *exchange = inbox->exchange;
    uint64_t *taken = &inbox->taken_bytes[from], at = log_begin(from) + *taken;
    struct record record;
    if (*taken >= load(&exchange->head->rows[from].written_bytes) ||
        !plim_file_read(exchange->fd, (int64_t)at, &record, sizeof(record)))
        return false;
    bool is_mine = record.channel < EXCHANGE_TO ||
                   record.channel == EXCHANGE_TO + (uint32_t)inbox->rank;
    if (is_mine) {
        struct plim_exchange_message *message = malloc(sizeof(*message) + record.bytes);
        if (!message || !plim_file_read(exchange->fd, (int64_t)(at + sizeof(record)), message->data, record.bytes)) {
            free(message);
            return false;
        }
        message->from = from;
        message->channel = (int)record.channel;
        message->number = record.number;
        message->bytes = record.bytes;
        message->next = inbox->newest;
        inbox->newest = message;
    }
    *taken += sizeof(record) + record.bytes;
    return true;
}

static void receive_all(struct plim_inbox *inbox, int from)
{
    uint64_t before = inbox->taken_bytes[from];
    while (receive_next(inbox, from)) continue;
    if (inbox->taken_bytes[from] != before)
        store(&inbox->exchange->head->rows[inbox->rank].taken_bytes[from],
              inbox->taken_bytes[from]);
}

const struct plim_exchange_message *plim_inbox_find(struct plim_inbox *inbox, int from,
                                                    int channel, uint64_t number)
{
    receive_all(inbox, from);
    const struct plim_exchange_message *message = inbox->newest;
    while (message && (message->number != number || message->from != from ||
                       message->channel != channel))
        message = message->next;
    return message;
}

void plim_inbox_discard(struct plim_inbox *inbox, int from, int channel, uint64_t below)
{
    struct plim_exchange_message **link = &inbox->newest;
    for (int rank = 0; rank < EXCHANGE_RANKS; rank++)
        if (from < 0 || from == rank) receive_all(inbox, rank);
    while (*link) {
        struct plim_exchange_message *message = *link;
        if (message->channel == channel && message->number < below &&
            (from < 0 || from == message->from)) {
            *link = message->next;
            free(message);
        } else link = &message->next;
    }
}

void plim_inbox_finish(struct plim_inbox *inbox)
{
    while (inbox->newest) {
        struct plim_exchange_message *message = inbox->newest;
        inbox->newest = message->next;
        free(message);
    }
}
