#include "round_trip.h"
#include "shadow.h"
#include <string.h>

/* The most recent copies to the host. The shadow stores their states at the host addresses, where no device memory
 * lies. */
enum { TRIPS = 64 };

static struct trip {
    uintptr_t at;
    size_t bytes; /* 0: unused */
} trips[TRIPS];
static size_t next;

static void clear_locked(struct trip *trip)
{
    plim_shadow_clear_locked(trip->at, trip->bytes);
    trip->bytes = 0;
}

void plim_round_trip_record(uintptr_t from, const void *to, size_t bytes, unsigned known)
{
    enum { NUMBER = 8 }; /* a single number: the program reads it and does not copy it back */
    uintptr_t at = (uintptr_t)to;
    bool is_trip = bytes > NUMBER && known & (PLIM_SOME_UNKNOWN | PLIM_ASSUMED);
    plim_self_lock();
    for (size_t i = 0; i < TRIPS; i++)
        if (trips[i].at < at + bytes && at < trips[i].at + trips[i].bytes) clear_locked(&trips[i]);
    if (is_trip) {
        clear_locked(&trips[next]);
        trips[next] = (struct trip){.at = at, .bytes = bytes};
        next = (next + 1) % TRIPS;
    }
    plim_self_unlock();
    if (is_trip) plim_shadow_copy(at, from, bytes);
}

static bool is_trip(uintptr_t at, size_t bytes)
{
    bool is_found = false;
    plim_self_lock();
    for (size_t i = 0; i < TRIPS; i++) is_found |= trips[i].bytes == bytes && trips[i].at == at;
    plim_self_unlock();
    return is_found;
}

/* True if the host memory still has the values that were copied there. Compares at most the first COMPARED bytes. */
static bool is_untouched(const unsigned char *host, size_t bytes)
{
    enum { COMPARED = 8 << 20, PIECE = 4096 };
    unsigned char given[PIECE];
    if (bytes > COMPARED) bytes = COMPARED;
    for (size_t done = 0; done < bytes; done += PIECE) {
        size_t piece = bytes - done < PIECE ? bytes - done : PIECE;
        plim_shadow_load((uintptr_t)host + done, given, NULL, piece);
        if (memcmp(host + done, given, piece) != 0) return false;
    }
    return true;
}

bool plim_round_trip_return(uintptr_t to, const void *from, size_t bytes)
{
    if (!is_trip((uintptr_t)from, bytes) || !is_untouched(from, bytes)) return false;
    plim_shadow_copy(to, (uintptr_t)from, bytes);
    return true;
}
