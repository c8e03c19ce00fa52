/* Plays a recording on a device; the result is a replay, like that of the engine (train/replay.h).
 *
 * The events before the steady step are played once, then the step again and again. With PyTorch's allocator, equal
 * states have equal futures: if at the end of a step the allocator's whole state (plim_allocator_fingerprint()) and the
 * places of all blocks that outlive the step are those at an earlier end, everything from then on repeats. Direct
 * allocations by the program leave no fragmentation: if a second step fits, all later ones do. In the same way a loop's
 * micro-steps are played until they repeat, and the others are skipped; only retries of played steps are counted.
 *
 * A player keeps its pools between runs. The steps' seconds are computed by time.h; 0 (unknown) if the recording has no
 * launches. */
#ifndef PLIM_WORKLOADS_RECORDING_PLAY_H
#define PLIM_WORKLOADS_RECORDING_PLAY_H

#include "recording.h"
#include "workloads/train/replay.h"

struct plim_player;

/* The device must outlive the player. `config` NULL: the allocator's defaults. */
enum plim_status plim_player_create(struct plim_device *device,
                                    const struct plim_allocator_config *config,
                                    struct plim_player **out,
                                    struct plim_error *err) PLIM_MUST_CHECK;
void plim_player_destroy(struct plim_player **player);

/* Sets a function that is called before each step; see plim_replayer_stop(). */
void plim_player_stop(struct plim_player *player, plim_replay_stop *stop, const void *user);

/* In subsequent runs at least this many steps are played, even if they repeat. */
void plim_player_set_min_steps(struct plim_player *player, int steps);

/* In subsequent runs exactly this many steps are played; 0: as many as needed. */
void plim_player_only(struct plim_player *player, int64_t steps);

/* Sets an observer of segments; see plim_allocator_observe(); NULL: none. Only with PyTorch's allocator. */
void plim_player_observe(struct plim_player *player, plim_allocator_observer observer, void *user);

/* Plays a stream from an empty device, with `accumulation` micro-steps per step if it has loops: four steps or, if they
 * do not repeat by then, as many as needed, at most PLIM_REPLAY_PROOF_STEPS. `out` is set as by plim_replay_run();
 * everything before the step counts as loading. PLIM_INVALID: the stream does not hold at this point (too small, or a
 * size beyond any memory); PLIM_CANCELLED. */
enum plim_status plim_player_run(struct plim_player *player,
                                 enum plim_recorded_allocator allocator,
                                 const struct plim_recorded_stream *stream,
                                 struct plim_recorded_point point, int64_t accumulation,
                                 struct plim_replay *out, struct plim_error *err) PLIM_MUST_CHECK;

/* Computes a hash of all sizes of the stream at this point on the player's GPU: if it is equal, two plays are equal
 * except for limit and seconds. Fails like plim_player_run(). */
enum plim_status plim_player_sizes(struct plim_player *player, const struct plim_recorded_stream *stream,
                                   struct plim_recorded_point point, uint64_t *out,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Sets the seconds of a replay of this stream at this point that ran on another device with the same allocations. Fails
 * like plim_player_run(). */
enum plim_status plim_player_retime(struct plim_player *player,
                                    const struct plim_recorded_stream *stream,
                                    struct plim_recorded_point point, int64_t accumulation,
                                    struct plim_replay *replay, struct plim_error *err) PLIM_MUST_CHECK;

#endif
