/* A recording on a device: the second producer of what the engine produces (train/replay.h).
 *
 * What comes before the steady step is played once, then the step again and again. Under PyTorch's
 * allocator two steps that end alike are followed by the same: where the allocator's whole state
 * (plim_allocator_fingerprint()) and the places of all blocks that outlive the step's end are those
 * of an earlier end, everything from there on repeats. Allocations of the program's own (direct)
 * leave no pieces: a second step that fits is as good as any later one. In the same way a loop's
 * micro-steps are played until they repeat, and the rest is left out; retries are those of what was played.
 *
 * A player keeps its pools between runs. The steps' seconds are those of time.h; 0, which is: not known,
 * of a recording that does not say what is launched.
 */
#ifndef PLIM_WORKLOADS_RECORDING_PLAY_H
#define PLIM_WORKLOADS_RECORDING_PLAY_H

#include "recording.h"
#include "workloads/train/replay.h"

struct plim_player;

/* The device outlives the player. `config` NULL: the allocator's defaults. */
enum plim_status plim_player_create(struct plim_device *device,
                                    const struct plim_allocator_config *config,
                                    struct plim_player **out,
                                    struct plim_error *err) PLIM_MUST_CHECK;
void plim_player_destroy(struct plim_player **player);

/* Asked before each step, as plim_replayer_stop(). */
void plim_player_stop(struct plim_player *player, plim_replay_stop *stop, const void *user);

/* So many steps are played at least from now on, though they repeat. */
void plim_player_go_on(struct plim_player *player, int steps);

/* So many steps are played from now on, no more and no less; 0: as many as it takes. */
void plim_player_only(struct plim_player *player, int64_t steps);

/* Told of every segment, as plim_allocator_observe(); NULL: nobody is. Under PyTorch's allocator. */
void plim_player_observe(struct plim_player *player, plim_allocator_observer observer, void *user);

/* Plays a stream from an empty device, with so many micro-steps a step where it has loops: four steps or, where they
 * do not repeat by then, as many as it takes, at most PLIM_REPLAY_PROOF_STEPS. `out` is filled as plim_replay_run()
 * does, but that what comes before the step counts as loading. PLIM_INVALID: the stream does not hold at this point
 * (a smaller one, or a size beyond any memory), and why; PLIM_CANCELLED. */
enum plim_status plim_player_run(struct plim_player *player,
                                 enum plim_recorded_allocator allocator,
                                 const struct plim_recorded_stream *stream,
                                 struct plim_recorded_point point, int64_t accumulation,
                                 struct plim_replay *out, struct plim_error *err) PLIM_MUST_CHECK;

/* All sizes of the stream at this point on the player's GPU, as one number: where it is the same, all else of a play
 * is, but for its limit and its seconds. Fails as plim_player_run(). */
enum plim_status plim_player_sizes(struct plim_player *player, const struct plim_recorded_stream *stream,
                                   struct plim_recorded_point point, uint64_t *out,
                                   struct plim_error *err) PLIM_MUST_CHECK;

/* Fills in the seconds of a replay of this stream at this point that another device made: what it
 * allocates is the same there. Fails as plim_player_run(). */
enum plim_status plim_player_retime(struct plim_player *player,
                                    const struct plim_recorded_stream *stream,
                                    struct plim_recorded_point point, int64_t accumulation,
                                    struct plim_replay *replay, struct plim_error *err) PLIM_MUST_CHECK;

#endif
