/* A worker that goes wrong on request: speaks the protocol (autotune/wire.h) and follows a script.
 *
 *   PLIM_FAKE_SCRIPT   one word per worker, separated by blanks; the last one also applies to all later workers
 *   PLIM_FAKE_COUNT    a file to which every worker adds a byte, so that it knows which one it is
 *
 * A word is BEHAVIOUR@POSITION, or a behaviour of the answers alone. A run that goes well reserves
 * one MiB per sample and takes a millisecond per sample; it fits below the capacity. Its median is the
 * time that it was given.
 */
#include "autotune/run/worker/process.h"
#include "autotune/run/worker/wire.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct plim_wire wire = {.fd = PLIM_WORKER_FD};
static char behaviour[32], position[32];
static int runs;

static bool is(const char *word)
{
    return !strcmp(behaviour, word);
}

static int my_number(void)
{
    struct stat info = {0};
    const char *path = getenv("PLIM_FAKE_COUNT");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
    if (fd < 0 || write(fd, "w", 1) != 1 || fstat(fd, &info)) exit(9);
    close(fd);
    return (int)info.st_size - 1;
}

static void read_script(void)
{
    const char *script = getenv("PLIM_FAKE_SCRIPT");
    int number = my_number();
    char word[64] = "ok";
    for (int used; script && number >= 0 && sscanf(script, "%63s%n", word, &used) == 1; number--)
        script += used;
    char *at = strchr(word, '@');
    if (at) snprintf(position, sizeof(position), "%.31s", at + 1);
    if (at) *at = '\0';
    snprintf(behaviour, sizeof(behaviour), "%.31s", word);
}

static void nap(double seconds)
{
    nanosleep(
        &(struct timespec){(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)},
        NULL);
}

static void send_bytes(const void *bytes, size_t count)
{
    if (write(PLIM_WORKER_FD, bytes, count) < 0) exit(0);
}

/* A process that is traced is not gone for its parent until the tracer lets it go: like one that
 * waits for a driver. The tracer does so after a second and a half. */
static void become_unkillable(void)
{
    int go[2], done[2];
    char byte = 0;
    if (pipe(go) || pipe(done)) exit(9);
    pid_t tracer = fork(), worker = getppid();
    if (!tracer) {
        setsid();
        if (read(go[0], &byte, 1) == 1 && !ptrace(PTRACE_SEIZE, worker, NULL, NULL)) byte = 1;
        if (write(done[1], &byte, 1) == 1) nap(1.5);
        _exit(0);
    }
    prctl(PR_SET_PTRACER, tracer, 0, 0, 0);
    if (write(go[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1 || !byte) exit(9);
}

/* What a worker does that does not send the message it should. */
static void go_wrong(struct plim_message *m)
{
    static uint8_t frame[PLIM_WIRE_MAX_BYTES];
    size_t count = plim_wire_encode(m, frame, sizeof(frame));
    if (is("kill")) raise(SIGKILL);
    if (is("segv")) signal(SIGSEGV, SIG_DFL), raise(SIGSEGV); /* a sanitizer would comment on it */
    if (is("exit")) exit(0);
    if (is("stop")) raise(SIGSTOP);
    if (is("stuck")) become_unkillable();
    if (is("deaf"))
        for (int i = 1; i < 32; i++) signal(i, SIG_IGN);
    if (is("garbage")) send_bytes("CUDA error: an illegal memory access was encountered\n", 53);
    if (is("cut")) {
        send_bytes(frame, count / 2);
        exit(0);
    }
    if (is("version")) {
        frame[4]++;
        send_bytes(frame, count);
    }
    if (is("flip")) {
        frame[count - 1] ^= 4;
        send_bytes(frame, count);
    }
    if (is("stale") || is("wrong")) {
        if (is("stale"))
            m->id++;
        else
            m->kind = PLIM_MESSAGE_BYE;
        send_bytes(frame, plim_wire_encode(m, frame, sizeof(frame)));
    }
    while (is("flood")) {
        send_bytes(frame, count);
        nap(0.01);
    }
    for (;;) pause();
}

static void say(const char *where, struct plim_message *m)
{
    if (is("slow")) nap(0.1);
    if (!strcmp(where, position)) go_wrong(m);
    if (plim_wire_send(&wire, m, -1)) exit(0);
}

static void say_phase(const char *where, uint32_t id, enum plim_worker_phase phase, int step)
{
    struct plim_message m = {
        .kind = PLIM_MESSAGE_PHASE, .id = id, .phase = {.phase = phase, .step = step}};
    say(where, &m);
}

/* What it sees of the world, in the words of a device. */
static void describe_myself(struct plim_device_info *info)
{
    const char *gpu = getenv("CUDA_VISIBLE_DEVICES"), *order = getenv("CUDA_DEVICE_ORDER"),
               *loading = getenv("CUDA_MODULE_LOADING");
    struct rlimit core = {1, 1};
    getrlimit(RLIMIT_CORE, &core);
    snprintf(info->name, sizeof(info->name), "%.60s", gpu ? gpu : "");
    snprintf(info->uri, sizeof(info->uri), "%.40s %.40s", order ? order : "",
             loading ? loading : "");
    for (int fd = 0; fd < 256; fd++)
        if (fcntl(fd, F_GETFD) >= 0) info->multiprocessors++;
    info->simulated = getpgrp() == getpid() && core.rlim_max == 0;
}

static void answer_open(void)
{
    struct plim_message m = {.kind = PLIM_MESSAGE_OPENED};
    describe_myself(&m.opened.info);
    say_phase("opening", 0, PLIM_PHASE_OPENING, 0);
    if (is("nodevice") || is("unlucky") || is("busy")) {
        m = (struct plim_message){
            .kind = PLIM_MESSAGE_FAILED,
            .failed = {is("nodevice") ? PLIM_NODEVICE : is("busy") ? PLIM_BUSY : PLIM_OOM, "no such GPU"}};
    }
    say("opened", &m);
}

static void fill(struct plim_replay *replay, const struct plim_message_run *run)
{
    int64_t bytes = run->setting.micro_batch << 20;
    replay->peak_allocated_bytes = replay->peak_reserved_bytes = bytes;
    if (run->capacity_bytes && bytes > run->capacity_bytes) {
        replay->verdict = PLIM_OOM;
        replay->oom_asked_bytes = bytes;
        return;
    }
    replay->steps_done = PLIM_REPLAY_STEPS;
    for (int i = 0; i < PLIM_REPLAY_STEPS; i++)
        replay->step[i] =
            (struct plim_replay_step){.peak_requested_bytes = bytes,
                                      .peak_reserved_bytes = bytes,
                                      .seconds = 1e-3 * (double)run->setting.micro_batch};
}

static void answer_run(const struct plim_message *request)
{
    struct plim_message m = {.kind = PLIM_MESSAGE_RESULT, .id = request->id};
    say_phase("building", m.id, PLIM_PHASE_BUILDING, 0);
    for (int step = 1; step <= PLIM_REPLAY_STEPS; step++)
        say_phase(step == 2 ? "step" : "-", m.id, PLIM_PHASE_STEP, step);
    say_phase("timing", m.id, PLIM_PHASE_TIMING, 0);
    say_phase("clearing", m.id, PLIM_PHASE_CLEARING, 0);
    if (!strcmp(position, "back")) say_phase("-", m.id, PLIM_PHASE_STEP, 2);
    fill(&m.result.replay, &request->run);
    m.result.finite = !is("nan");
    m.result.suspect = is("leak");
    m.result.timing = (struct plim_timing){.repeats = 7,
                                           .median_seconds = request->run.timing_seconds,
                                           .half_width_seconds = runs ? 0.05 : 0.1};
    if (is("noisy")) m.result.timing.noisy = runs == 0;
    if (is("fickle") || is("noisier") || is("still-noisy")) m.result.timing.noisy = true;
    if (is("noisier") && runs) m.result.timing.half_width_seconds = 0.2;
    if (is("quieter")) {
        m.result.timing.noisy = runs == 0;
        m.result.timing.half_width_seconds = runs ? 0.2 : 0.1;
    }
    if (is("oom") || (is("fickle") && runs)) {
        m.result.replay.verdict = PLIM_OOM;
        m.result.replay.steps_done = 1;
    }
    if (is("refused")) {
        m.result.replay.verdict = PLIM_OOM;
        m.result.replay.steps_done = 1;
        m.result.refused = true;
    }
    if (is("lacking") || is("failing"))
        m = (struct plim_message){.kind = PLIM_MESSAGE_FAILED,
                                  .id = request->id,
                                  .failed = {is("lacking") ? PLIM_NODEVICE : PLIM_INVALID,
                                             "a library is not there"}};
    if (is("lost") || is("unsupported"))
        m.result.replay =
            (struct plim_replay){.verdict = is("lost") ? PLIM_LOST : PLIM_UNSUPPORTED};
    say("result", &m);
    runs++;
    if (is("lost")) exit(1);
}

int main(int argc, char **argv)
{
    struct plim_message in, hello = {.kind = PLIM_MESSAGE_HELLO, .hello = {.build = PLIM_VERSION}};
    if (argc != 3 || !plim_process_become_worker((pid_t)atol(argv[2]))) return 9;
    read_script();
    if (is("build")) hello.hello.build = "0.0.0";
    if (!strcmp(position, "start")) go_wrong(&hello);
    say("hello", &hello);
    while (!plim_wire_receive(&wire, &in, -1)) {
        if (in.kind == PLIM_MESSAGE_OPEN)
            answer_open();
        else if (in.kind == PLIM_MESSAGE_RUN)
            answer_run(&in);
        else if (in.kind == PLIM_MESSAGE_BYE)
            break;
    }
    if (!strcmp(position, "bye")) go_wrong(&hello);
    plim_wire_finish(&wire);
    return 0;
}
