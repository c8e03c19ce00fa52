/* A recording, with the checksum that its bytes have; what is xz stays as it is. What is accepted can be
 * played, and every text comes out of xz as it went in. */
#include "target.h"
#include "autotune/base/xz.h"
#include "autotune/base/sha256.h"
#include "devices/open.h"
#include "workloads/recording/merge.h"
#include "workloads/recording/play.h"
#include <stdio.h>
#include <string.h>

enum { FEW_EVENTS = 4096 };

static void play(const struct plim_recording *recording)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_device *device = NULL;
    struct plim_player *player = NULL;
    struct plim_replay replay;
    fuzz_expect(plim_device_open("sim:A100-SXM4-80GB", &device, &err) == PLIM_OK);
    fuzz_expect(plim_player_create(device, NULL, &player, &err) == PLIM_OK);
    for (size_t i = 0; i < recording->streams.count; i++) {
        const struct plim_recorded_stream *stream = &recording->streams.items[i];
        if (stream->events.count > FEW_EVENTS) continue;
        for (int64_t accumulation = 2; accumulation < 5; accumulation++) {
            enum plim_status st = plim_player_run(player, recording->allocator, stream,
                                                  stream->from, accumulation, &replay, &err);
            fuzz_expect(st == PLIM_OK || st == PLIM_INVALID || st == PLIM_NOMEM);
        }
    }
    plim_player_destroy(&player);
    plim_device_close(&device);
}

/* Each of its combinations is in itself already. */
static void merge_with_itself(struct plim_recording *recording, const char *path)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_recording again = {0};
    enum plim_status st = plim_recording_read(path, &again, &err);
    if (!st) st = plim_recording_merge(recording, &again, &err);
    fuzz_expect(st == PLIM_INVALID || st == PLIM_NOMEM);
    plim_recording_finish(&again);
}

static void pack(const char *text, size_t length)
{
    struct plim_error err = PLIM_ERROR_INIT;
    char *packed, *again;
    size_t packed_bytes, again_length;
    fuzz_expect(plim_xz_pack(text, length, &packed, &packed_bytes, &err) == PLIM_OK);
    fuzz_expect(plim_xz_unpack("job.plim", packed, packed_bytes, length, &again, &again_length,
                                 &err) == PLIM_OK);
    fuzz_expect(again_length == length && !memcmp(again, text, length));
    free(again);
    free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plim_error err = PLIM_ERROR_INIT;
    struct plim_recording recording = {0};
    char *text = malloc(size + 128), hash[PLIM_SHA256_TEXT];
    fuzz_expect(text != NULL);
    if (size) memcpy(text, data, size);
    plim_sha256_text(data, size, hash);
    size_t length = size;
    if (!plim_xz_is(text, size))
        length += (size_t)snprintf(text + size, 128, "checksum: %s\n", hash);
    pack(text, length);
    const char *path = fuzz_file("job.plim", (const uint8_t *)text, length);
    if (plim_recording_read(path, &recording, &err) == PLIM_OK) {
        play(&recording);
        merge_with_itself(&recording, path);
    }
    plim_recording_finish(&recording);
    free(text);
    return 0;
}
