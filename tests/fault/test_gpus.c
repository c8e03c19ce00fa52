/* A whole `plimsoll tune` on a pretended GPU on which something goes wrong, at every place where it
 * can: the answer is right or says what is missing, and nothing is left behind.
 *
 * With sanitizers (PLIM_FAULT_WAYS 1) every sixth fault is tried, once or always in turn; else all are, both ways.
 *
 *   PLIM_FAULT_POSITIONS   how many positions of each fault are tried, evenly; "all"; plain: one
 *   PLIM_FAULT_TABLE       a file to which a line for each fault is added: what came of it
 */
#include "autotune/base/clock.h"
#include "tests/cli/program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <criterion/parameterized.h>
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Micro-batch 9 fits without checkpointing and nothing does with it. The GPU has 2 MiB beyond what
 * the budget and the process itself take, so that what others take is missed. */
#define QUOTED(path) "\"" path "\"" /* for a shell, also inside of '' */
#define TUNE QUOTED(PLIM_BINARY) " tune " QUOTED(PLIM_SPECS) "/smallest.yaml --margin 0 --device cuda:0 --json "

static const double BUDGET_SECONDS = PLIM_SLOWER * 6, HANGING_BUDGET_SECONDS = PLIM_SLOWER * 2,
                    GRACE_SECONDS = 15, MOST_BUDGET_SECONDS = 90;

enum { ANSWER, NOFIT, USAGE, NODEVICE, NOT_BUILT, EARLY, INTERNAL }; /* exit codes */

/* What a fault may do to the answer. */
enum harm {
    NONE,    /* the answer is that of a GPU without faults */
    FAILURE, /* what it strikes, or all, fails with a verdict of its own */
    MEMORY   /* memory is really missing: what would fit may not */
};

struct fault_kind {
    const char *name;
    enum harm once, always; /* in one worker, in every worker */
};

static const struct fault_kind kinds[] = {
    {"oom", NONE, MEMORY},     {"oom-launch", NONE, MEMORY},    {"disguised", NONE, MEMORY},
    {"oom-lib", NONE, MEMORY}, {"disguised-lib", NONE, MEMORY}, {"lost", NONE, FAILURE},
    {"kill", NONE, FAILURE},   {"vanish", FAILURE, FAILURE},    {"hang", FAILURE, FAILURE},
    {"leak", NONE, MEMORY},    {"steal", MEMORY, MEMORY},       {"nan", FAILURE, FAILURE},
    {"slow", NONE, NONE},      {"busy", NONE, FAILURE},
};

enum { KIND_COUNT = sizeof(kinds) / sizeof(kinds[0]), MOST_CASES = 40000 };

/* One search. Parameters of a test travel to another process: no pointers. */
struct fault_case {
    char name[64];              /* in messages */
    char fault[64];             /* "oom@3!", or "" */
    char environment[192];      /* for env(1) */
    char gpu[48], options[80]; /* of with-stand-ins, of plimsoll */
    enum harm harm;
    double budget_seconds;
};

struct search {
    int exit_code;
    double seconds, budget_seconds;
    json_t *report; /* NULL: none was written */
    char *errors;
    char folder[64];
};

/* --- running ---------------------------------------------------------------------------------- */

static char *read_text(const char *folder, const char *name)
{
    char path[128], *text = calloc(1, 1 << 20);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    cr_assert(file && text, "%s", path);
    text[fread(text, 1, (1 << 20) - 1, file)] = '\0';
    fclose(file);
    unlink(path);
    return text;
}

/* `then`: a shell command that runs on the same GPU afterwards, or "". */
static struct search search_once(const struct fault_case *c, const char *then)
{
    char command[2048];
    struct search s = {.folder = "/tmp/plimsoll-gpus-XXXXXX", .budget_seconds = c->budget_seconds};
    cr_assert(mkdtemp(s.folder) != NULL);
    cr_assert(not(prctl(PR_SET_CHILD_SUBREAPER, 1)));
    snprintf(command, sizeof(command),
             "TMPDIR=%s timeout -s KILL 110 " QUOTED(PLIM_WITH_STAND_INS) " --build " QUOTED(
                 PLIM_BUILD_FOLDER) " %s %s%s -- sh -c 'env %s " TUNE
                                    "%s --budget %gs; status=$?; %s; "
                                    "exit $status' >%s/out 2>%s/err </dev/null",
             s.folder, c->gpu, *c->fault ? "--fault " : "", c->fault, c->environment, c->options,
             c->budget_seconds, *then ? then : ":", s.folder, s.folder);
    double start = plim_clock_seconds();
    int status = system(command);
    s.seconds = plim_clock_seconds() - start;
    s.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    char *out = read_text(s.folder, "out");
    s.errors = read_text(s.folder, "err");
    s.report = json_loads(out, JSON_DISABLE_EOF_CHECK, NULL);
    free(out);
    return s;
}

/* Orphans are ours, and there are none; what was not removed keeps its folder. */
static void finish(struct search *s)
{
    cr_expect(program_none_is_left(), "a process is left");
    cr_expect(not(rmdir(s->folder)), "%s: a file is left", s->folder);
    json_decref(s->report);
    free(s->errors);
}

static struct fault_case plain_case(void)
{
    return (struct fault_case){.name = "nothing",
                               .environment = "LC_ALL=C",
                               .gpu = "--memory 300MiB",
                               .options = "--overhead 278MiB --quiet",
                               .budget_seconds = BUDGET_SECONDS};
}

/* A search without faults takes a third of it at most, as busy as the machine is now. */
static double budget_now(void)
{
    for (struct fault_case c = plain_case();; c.budget_seconds *= 2) {
        struct search s = search_once(&c, "");
        bool enough = s.exit_code == ANSWER && s.seconds < c.budget_seconds / 3;
        finish(&s);
        if (enough || c.budget_seconds > MOST_BUDGET_SECONDS / 2) return c.budget_seconds;
    }
}

/* Where an answer has to come and the time was up, there is another try if the machine is slow by
 * itself. */
static struct search search(const struct fault_case *c, const char *then)
{
    struct search s = search_once(c, then);
    if (s.exit_code != EARLY || c->harm != NONE) return s;
    struct fault_case longer = *c;
    longer.budget_seconds = budget_now();
    if (longer.budget_seconds <= c->budget_seconds) return s;
    finish(&s);
    return search_once(&longer, then);
}

/* --- judging ---------------------------------------------------------------------------------- */

/* The largest micro-batch that fits on a GPU without faults. */
static int64_t edge_of(const char *checkpointing)
{
    return strcmp(checkpointing, "none") ? 0 : 9;
}

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static bool is_searched(const json_t *setting)
{
    return !strcmp(text_at(setting, "optimizer"), "adamw") &&
           !strcmp(text_at(setting, "precision"), "bf16-mixed");
}

/* The verdict of the setting that a GPU without faults would choose; "": it was not run. */
static const char *verdict_of_best(const json_t *report)
{
    size_t i;
    json_t *sample;
    json_array_foreach(
        json_object_get(report, "samples"), i,
        sample) if (json_integer_value(json_object_get(sample, "micro_batch")) == edge_of("none") &&
                    !strcmp(text_at(sample, "checkpointing"), "none")) return text_at(sample,
                                                                                      "verdict");
    return "";
}

static void judge_samples(const struct fault_case *c, const struct search *s)
{
    size_t i;
    json_t *sample;
    json_array_foreach(json_object_get(s->report, "samples"), i, sample)
    {
        int64_t batch = json_integer_value(json_object_get(sample, "micro_batch"));
        bool fits = batch <= edge_of(text_at(sample, "checkpointing"));
        const char *verdict = text_at(sample, "verdict");
        if (!is_searched(sample)) continue; /* of the advice */
        if (!strcmp(verdict, "ok"))
            cr_expect(fits, "%s: ok at micro-batch %d", c->name, (int)batch);
        else if (!strcmp(verdict, "oom"))
            cr_expect(c->harm == MEMORY || !fits, "%s: oom at micro-batch %d", c->name, (int)batch);
        else
            cr_expect(c->harm != NONE, "%s: %s at micro-batch %d", c->name, verdict, (int)batch);
    }
}

static void judge_choice(const struct fault_case *c, const struct search *s)
{
    const json_t *choice = json_object_get(s->report, "choice");
    int64_t batch = json_integer_value(json_object_get(choice, "micro_batch"));
    int64_t edge = edge_of(text_at(choice, "checkpointing"));
    if (json_is_object(choice)) {
        cr_expect(batch > 0 && batch <= edge, "%s: micro-batch %d is chosen", c->name, (int)batch);
        cr_expect(s->exit_code == EARLY || s->exit_code == INTERNAL ||
                      json_is_true(json_object_get(choice, "verified")),
                  "%s: not verified", c->name);
    }
    cr_expect(s->exit_code != ANSWER || json_is_object(choice), "%s: no answer", c->name);
    cr_expect(s->exit_code != NOFIT || !json_is_object(choice), "%s: an answer", c->name);
    bool whole = s->exit_code == ANSWER || s->exit_code == NOFIT;
    if (whole && batch != edge_of("none"))
        cr_expect(c->harm != NONE && strcmp(verdict_of_best(s->report), "ok") != 0 &&
                      *verdict_of_best(s->report),
                  "%s: micro-batch %d is chosen, and nothing says why", c->name, (int)batch);
}

static void judge(const struct fault_case *c, const struct search *s)
{
    bool early = s->exit_code == EARLY || s->exit_code == INTERNAL;
    cr_expect(s->exit_code == ANSWER || s->exit_code == NOFIT || s->exit_code == NODEVICE || early,
              "%s: exit code %d: %s", c->name, s->exit_code, s->errors);
    cr_expect(lt(dbl, s->seconds, s->budget_seconds + GRACE_SECONDS), "%s", c->name);
    cr_expect(strstr(s->errors, "still on a GPU") == NULL, "%s: %s", c->name, s->errors);
    bool sound = !strstr(s->errors, "Sanitizer") && !strstr(s->errors, "runtime error");
    cr_expect(sound, "%s: %s", c->name, s->errors);
    if (c->harm == NONE) cr_expect(eq(int, s->exit_code, ANSWER), "%s: %s", c->name, s->errors);
    if (c->harm == FAILURE) cr_expect(ne(int, s->exit_code, NOFIT), "%s", c->name);
    if (!s->report) {
        cr_expect(s->exit_code == NODEVICE || s->exit_code == INTERNAL || s->exit_code == EARLY,
                  "%s: no report", c->name);
        cr_expect(strstr(s->errors, "plimsoll: ") != NULL, "%s: no report and no word", c->name);
        return;
    }
    cr_expect(eq(int, json_is_true(json_object_get(s->report, "interrupted")),
                 early || s->exit_code == NODEVICE),
              "%s", c->name);
    judge_samples(c, s);
    judge_choice(c, s);
}

static void note_outcome(const struct fault_case *c, const struct search *s)
{
    const json_t *choice = json_object_get(s->report, "choice");
    const char *path = getenv("PLIM_FAULT_TABLE");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%s exit %d, micro-batch %d, %s, %.1f s\n", c->name, s->exit_code,
            (int)json_integer_value(json_object_get(choice, "micro_batch")),
            verdict_of_best(s->report), s->seconds);
    fclose(file);
}

static void run_case(const struct fault_case *c)
{
    struct search s = search(c, "");
    judge(c, &s);
    note_outcome(c, &s);
    finish(&s);
}

/* --- the faults ------------------------------------------------------------------------------- */

Test(gpus, without_faults_the_answer_is_the_expected_one)
{
    struct fault_case c = plain_case();
    struct search s = search(&c, "");
    judge(&c, &s);
    cr_expect(eq(str, (char *)verdict_of_best(s.report), (char *)"ok"), "%s", s.errors);
    finish(&s);
}

static unsigned count_of(const char *events, const char *kind)
{
    unsigned count;
    char name[32];
    for (const char *line = events; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (sscanf(line, "%31s %u", name, &count) == 2 && !strcmp(name, kind)) return count;
    return 0;
}

static unsigned positions(unsigned count)
{
    const char *text = getenv("PLIM_FAULT_POSITIONS");
    unsigned wanted = !text                  ? 1
                      : !strcmp(text, "all") ? count
                                             : (unsigned)strtoul(text, NULL, 10);
    return wanted < count ? wanted : count;
}

/* From the first to the last, nearly evenly: what comes in a rhythm is not always struck at the same
 * beat. A single one is in the middle. */
static unsigned position(unsigned i, unsigned wanted, unsigned count)
{
    unsigned even = wanted < 2 ? count / 2 : (unsigned)((uint64_t)i * (count - 1) / (wanted - 1));
    unsigned beat = wanted < count && i + 1 < wanted ? i % 4 : 0;
    return even + beat < count ? even + beat + 1 : count;
}

static struct fault_case make_case(const struct fault_kind *kind, unsigned at, bool once)
{
    struct fault_case c = plain_case();
    snprintf(c.fault, sizeof(c.fault), "%s@%u%s", kind->name, at, once ? "!" : "");
    snprintf(c.name, sizeof(c.name), "%s", c.fault);
    c.harm = once ? kind->once : kind->always;
    if (!strcmp(kind->name, "hang")) c.budget_seconds = HANGING_BUDGET_SECONDS;
    return c;
}

ParameterizedTestParameters(gpus, a_fault_anywhere)
{
    struct fault_case plain = plain_case();
    struct search s = search(&plain, QUOTED(PLIM_GPU_PROCESSES) " events >&2");
    struct fault_case *cases = cr_malloc(MOST_CASES * sizeof(*cases));
    size_t count = 0;
    for (size_t k = 0; k < KIND_COUNT; k++) {
        unsigned events = count_of(s.errors, kinds[k].name), wanted = positions(events);
        cr_assert(lt(u32, 0, events), "%s: %s", kinds[k].name, s.errors);
        for (unsigned i = 0; i < 2 * wanted && count < MOST_CASES; i++)
            if (PLIM_FAULT_WAYS == 2 || (i + k) % 12 == 0)
                cases[count++] = make_case(&kinds[k], position(i / 2, wanted, events), i % 2 != 0);
    }
    finish(&s);
    return cr_make_param_array(struct fault_case, cases, count, NULL);
}

ParameterizedTest(struct fault_case *c, gpus, a_fault_anywhere)
{
    run_case(c);
}

/* --- libraries that are wrong or missing ------------------------------------------------------ */

/* NVML only reports what other processes hold: without it, or if its reports are wrong, CUDA decides. */
Test(gpus, whatever_nvml_tells_the_answer_is_the_same)
{
    static const char *const lies[] = {"wrong-memory", "old",      "no-memory", "hide-processes",
                                       "throttle@1",   "crowd=30", "exclusive", "name=R300-Ultra"};
    const size_t step = PLIM_FAULT_WAYS == 2 ? 1 : 3;
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i += step) {
        struct fault_case c = plain_case();
        snprintf(c.name, sizeof(c.name), "NVML: %s", lies[i]);
        snprintf(c.environment, sizeof(c.environment), "PLIM_DOUBLE_NVML=%s", lies[i]);
        run_case(&c);
    }
}

/* --- what workers work out -------------------------------------------------------------------- */

/* The last number of a line of gpu_processes: in all processes. */
static unsigned all_of(const char *events, const char *kind)
{
    unsigned all = 0;
    const char *line = strstr(events, kind);
    return line && sscanf(line, "%*s %*u %u", &all) == 1 ? all : 0;
}

Test(gpus, what_a_worker_worked_out_the_next_one_knows)
{
    struct fault_case c = plain_case();
    snprintf(c.options, sizeof(c.options), "--overhead 278MiB");
    struct search s = search(&c, QUOTED(PLIM_GPU_PROCESSES) " events >&2");
    unsigned alone = all_of(s.errors, "choice"), launches = all_of(s.errors, "kill");
    cr_expect(lt(u32, 0, alone), "%s", s.errors);
    finish(&s);
    snprintf(c.name, sizeof(c.name), "a worker is killed late");
    snprintf(c.fault, sizeof(c.fault), "kill@%u!", launches * 3 / 4);
    s = search(&c, QUOTED(PLIM_GPU_PROCESSES) " events >&2");
    cr_expect(strstr(s.errors, "a worker process was lost") != NULL, "%s", s.errors);
    cr_expect(eq(u32, all_of(s.errors, "choice"), alone), "%s", s.errors);
    judge(&c, &s);
    finish(&s);
}

/* --- who has the GPU -------------------------------------------------------------------------- */

/* An exclusive GPU takes the next worker only when the last one has gone. */
Test(gpus, an_exclusive_gpu_outlives_its_workers)
{
    struct fault_case c = plain_case();
    snprintf(c.name, sizeof(c.name), "exclusive, a worker is killed");
    snprintf(c.fault, sizeof(c.fault), "kill@40!");
    snprintf(c.environment, sizeof(c.environment), "PLIM_DOUBLE_NVML=exclusive");
    run_case(&c);
}

/* A folder with what a control daemon of MPS puts there; `environment` of the case is set to it. */
static void start_mps(struct fault_case *c, char folder[static 32], const char *limits)
{
    char path[64];
    snprintf(folder, 32, "/tmp/plimsoll-mps-XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/control", folder);
    cr_assert(eq(int, mkfifo(path, 0600), 0));
    snprintf(c->environment, sizeof(c->environment),
             "PLIM_DOUBLE_NVML=exclusive CUDA_MPS_PIPE_DIRECTORY=%s %s", folder, limits);
}

static void end_mps(const char *folder)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/control", folder);
    cr_expect(eq(int, unlink(path), 0));
    cr_expect(eq(int, rmdir(folder), 0));
}

Test(gpus, an_exclusive_gpu_is_shared_through_mps_and_not_without)
{
    char folder[32];
    struct fault_case c = plain_case();
    snprintf(c.name, sizeof(c.name), "exclusive, through MPS");
    snprintf(c.gpu, sizeof(c.gpu), "--memory 400MiB --others 100MiB");
    snprintf(c.options, sizeof(c.options), "--overhead 278MiB");
    start_mps(&c, folder, "");
    struct search s = search(&c, "");
    judge(&c, &s);
    cr_expect(strstr(s.errors, "through MPS here") != NULL, "%s", s.errors);
    finish(&s);
    end_mps(folder);
    s = search_once(&c, ""); /* the daemon has gone */
    cr_expect(eq(int, s.exit_code, NODEVICE), "%s", s.errors);
    cr_expect(strstr(s.errors, "exclusive compute mode") != NULL, "%s", s.errors);
    finish(&s);
}

Test(gpus, an_mps_server_that_is_not_ready_is_waited_for)
{
    char folder[32];
    struct fault_case c = plain_case();
    snprintf(c.name, sizeof(c.name), "MPS, the server recovers");
    snprintf(c.fault, sizeof(c.fault), "busy@1!,lost@40!");
    start_mps(&c, folder, "");
    run_case(&c);
    end_mps(folder);
}

/* A client may not use more than its limit, whatever memory the GPU has. */
Test(gpus, the_memory_limit_of_an_mps_client_counts)
{
    char folder[32];
    struct fault_case c = plain_case();
    snprintf(c.name, sizeof(c.name), "MPS, a memory limit");
    snprintf(c.gpu, sizeof(c.gpu), "--memory 4GiB");
    snprintf(c.options, sizeof(c.options), "--overhead 1232MiB --quiet"); /* nothing is left to search in */
    start_mps(&c, folder, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G");
    struct search s = search(&c, "");
    const json_t *limit = json_object_get(s.report, "limit");
    int64_t usable = json_integer_value(json_object_get(limit, "usable_bytes"));
    cr_expect(le(i64, usable, (int64_t)5 << 28), "%s", s.errors);
    cr_expect(ge(i64, usable, (int64_t)3 << 28), "%s", s.errors);
    finish(&s);
    end_mps(folder);
}

/* --- other libraries -------------------------------------------------------------------------- */

/* Creates a folder of the stand-ins in which `replacement` replaces `library`; "": without that library. */
static struct search search_with(struct fault_case *c, const char *library, const char *replacement)
{
    static const char *const names[] = {"libcuda.so.1", "libnvidia-ml.so.1", PLIM_CUBLASLT,
                                        "libcudnn.so.9"};
    char folder[] = "/tmp/plimsoll-libraries-XXXXXX", path[64];
    cr_assert(mkdtemp(folder) != NULL);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char target[512];
        const char *from = strcmp(names[i], library) ? "." : replacement;
        snprintf(target, sizeof(target), PLIM_DOUBLES_FOLDER "/%s/%s", from, names[i]);
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        if (*from) cr_assert(eq(int, symlink(target, path), 0));
    }
    snprintf(c->name, sizeof(c->name), "%s: '%s'", library, replacement);
    snprintf(c->environment, sizeof(c->environment), "LD_LIBRARY_PATH=%s PLIMSOLL_CUDA_PATH=%s",
             folder, folder);
    struct search s = search(c, "");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    cr_expect(eq(int, rmdir(folder), 0));
    return s;
}

Test(gpus, without_nvml_the_answer_is_the_same)
{
    struct fault_case c = plain_case();
    snprintf(c.options, sizeof(c.options), "--overhead 278MiB");
    struct search s = search_with(&c, "libnvidia-ml.so.1", "");
    judge(&c, &s);
    cr_expect(strstr(s.errors, "there is no NVML") != NULL, "%s", s.errors);
    finish(&s);
}

Test(gpus, without_nvml_what_others_hold_is_not_given_out)
{
    struct fault_case c = plain_case();
    snprintf(c.gpu, sizeof(c.gpu), "--memory 4GiB --others 2GiB");
    snprintf(c.options, sizeof(c.options), "--overhead 1GiB");
    c.harm = MEMORY;
    c.budget_seconds = 3 * PLIM_SLOWER;
    struct search s = search_with(&c, "libnvidia-ml.so.1", "");
    const json_t *limit = json_object_get(s.report, "limit");
    int64_t usable = json_integer_value(json_object_get(limit, "usable_bytes"));
    cr_expect(ge(i64, usable, (int64_t)3 << 29), "%s", s.errors);
    cr_expect(le(i64, usable, (int64_t)5 << 29), "%s", s.errors);
    finish(&s);
}

Test(gpus, without_cudnn_the_answer_is_the_same)
{
    struct fault_case c = plain_case();
    struct search s = search_with(&c, "libcudnn.so.9", "old");
    judge(&c, &s);
    finish(&s);
}

static bool has_reason(const json_t *report, const char *part)
{
    size_t i;
    json_t *reason;
    json_array_foreach(json_object_get(report, "why"), i, reason)
    {
        if (strstr(json_string_value(reason), part)) return true;
    }
    return false;
}

/* Volta's tensor cores are PyTorch's and not ours. Time may run out. */
Test(gpus, attention_that_falls_back_is_named_and_its_seconds_are_simulated)
{
    struct fault_case c = plain_case();
    snprintf(c.gpu, sizeof(c.gpu), "--gpu V100-SXM2-16GB --memory 1GiB");
    snprintf(c.options, sizeof(c.options),
             "--overhead 900MiB --batch 1 --precision fp16-mixed --checkpointing none");
    c.budget_seconds = BUDGET_SECONDS / 3;
    struct search s = search_once(&c, "");
    if (s.exit_code == NOT_BUILT) {
        finish(&s);
        cr_skip_test("this build has no kernels for Volta");
    }
    cr_assert(s.exit_code == ANSWER || s.exit_code == EARLY, "%s", s.errors);
    size_t i, named = 0;
    json_t *sample;
    json_array_foreach(json_object_get(s.report, "samples"), i, sample)
    {
        if (strcmp(text_at(sample, "verdict"), "ok")) continue;
        cr_expect(strstr(text_at(sample, "attention_engine"), "fall-back") != NULL);
        cr_expect(json_object_get(sample, "repeats") == NULL, "seconds that were measured");
        named++;
    }
    cr_expect(lt(sz, 0, named));
    cr_expect(has_reason(s.report, "the seconds are simulated"));
    cr_expect(strstr(s.errors, "times are simulated, not measured") != NULL, "%s", s.errors);
    finish(&s);
}

Test(gpus, overhead_that_was_not_counted_is_said)
{
    struct fault_case c = plain_case();
    snprintf(c.options, sizeof(c.options), "--overhead 1MiB --margin 277MiB --quiet");
    struct search s = search(&c, "");
    cr_assert(eq(int, s.exit_code, ANSWER), "%s", s.errors);
    cr_expect(has_reason(s.report, "come out of the margin"));
    finish(&s);
    c = plain_case(); /* all of it is counted */
    s = search(&c, "");
    cr_expect(not(has_reason(s.report, "come out of the margin")));
    finish(&s);
}

Test(gpus, without_cublaslt_the_gpu_cannot_be_used)
{
    struct fault_case c = plain_case();
    c.harm = FAILURE;
    struct search s = search_with(&c, PLIM_CUBLASLT, "old");
    judge(&c, &s);
    cr_expect(eq(int, s.exit_code, NODEVICE), "%s", s.errors);
    cr_expect(strstr(s.errors, "cuBLASLt") != NULL, "%s", s.errors);
    finish(&s);
}

Test(gpus, without_a_driver_there_is_no_device)
{
    struct fault_case c = plain_case();
    c.harm = FAILURE;
    struct search s = search_with(&c, "libcuda.so.1", "");
    judge(&c, &s);
    cr_expect(eq(int, s.exit_code, NODEVICE), "%s", s.errors);
    finish(&s);
}
