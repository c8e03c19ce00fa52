#include "options.h"
#include "autotune/base/text.h"
#include "option_kinds.h"
#include "workloads/spec/key.h"
#include <string.h>

/* --- the table -------------------------------------------------------------------------------- */

/* Bits of the commands that take an option. */
enum {
    T = 1 << PLIM_COMMAND_TUNE,
    P = 1 << PLIM_COMMAND_PLAN,
    E = 1 << PLIM_COMMAND_EXPLAIN,
    X = 1 << PLIM_COMMAND_EXEC,
    W = 1 << PLIM_COMMAND_RECORD, /* writes a recording */
    D = 1 << PLIM_COMMAND_DEVICES,
    M = 1 << PLIM_COMMAND_MODELS,
    I = 1 << PLIM_COMMAND_IMPORT,
    R = 1 << PLIM_COMMAND_REPORT,
    C = 1 << PLIM_COMMAND_COMPLETION,
    V = 1 << PLIM_COMMAND_ENV,
    S = 1 << PLIM_COMMAND_STORE,
    A = 1 << PLIM_COMMAND_APPLY,
    U = 1 << PLIM_COMMAND_REVERT,
    F = 1 << PLIM_COMMAND_EMIT,
    H = 1 << PLIM_COMMAND_HELP
};

/* Commands whose arguments are a list. */
enum { TAKES_SEVERAL = R | S | A | U | F };

/* Options that set a key of the spec, a switch, a field of the request, or something that their kind knows. */
#define KEY(name, argument, commands, key, help)                                                   \
    {name, argument, commands, plim_option_key, 0, 0, key, help}
#define SWITCH(name, commands, member, help)                                                       \
    {name, NULL, commands, plim_option_switch, offsetof(struct plim_request, member), 0, NULL, help}
#define FIELD(name, argument, commands, kind, member, most, help)                                  \
    {name, argument, commands, plim_option_##kind, offsetof(struct plim_request, member),          \
     most, NULL, help}
#define OTHER(name, argument, commands, kind, help)                                                \
    {name, argument, commands, plim_option_##kind, 0, 0, NULL, help}

/* clang-format off */
static const struct plim_option options[] = {
    FIELD("--device", "URI", T | P | E | X | W, devices, devices, 0,
      "auto (default), cuda:N, host, sim:NAME or sim:24GiB; \",memory=24GiB\" may follow. "
      "plan takes a list, or all; tune cuda:all"),
    FIELD("--model", "SPEC", T | P | E | V | I, text, model, 0,
      "where SPEC is a trainer's config: the model of its job; default: the one that it names"),
    KEY("--batch", "N", T | P | E, "train.micro_batch",
      "micro-batch, samples: 8, or a list 4,8; default: searched"),
    KEY("--seq", "N", T | P | E, "data.seq",
      "sequence length, tokens: 2048, 512,1024 or 512:4096:512"),
    FIELD("--batch", "LIST", X, text, program.batch, 0,
      "what {batch} may be: 1:512 (the largest that fits is searched), a list 8,16,32, or "
      "1:512:x2; default: any"),
    FIELD("--seq", "LIST", X | W, text, program.seq, 0,
      "what {seq} may be: 512,1024 or 256:1024:256; the best batch is found for each"),
    FIELD("--batch", "LIST", W, text, program.batch, 0,
      "batches to record, of which three have to do alike; default: 1,2,3,4, "
      "larger ones where these do not, and 16 to see whether they tell of it"),
    SWITCH("--each-batch", W, program.each_batch,
      "each batch does otherwise (samples one by one): it is recorded alone, and holds for itself alone"),
    FIELD("--merge", "FILE.plim", W, list, program.merged, 0,
      "instead of CMD: a recording that was made with some values of the axes; those given become one; repeatable"),
    FIELD("--axis", "NAME=LIST", X | W, pairs, program.axes, 8,
      "what {NAME} may be: words, numbers or a range; repeatable"),
    FIELD("--axis", "NAME=LIST", T | P | E, pairs, program.axes, 8,
      "of a recording: values of one of its own axes; default: all; repeatable"),
    FIELD("--env", "NAME=VALUE", X | W, pairs, program.variables, PLIM_PROGRAM_VARIABLES,
      "a variable of the program's environment, with placeholders; repeatable"),
    FIELD("--file", "TEMPLATE=PATH", X | W, pairs, program.files, PLIM_PROGRAM_FILES,
      "write TEMPLATE, its placeholders filled in, to PATH for each trial ({dir}/train.yaml)"),
    FIELD("--assume", "FILE:LINE=VALUE", X | W, pairs, program.assumes, PLIM_PROGRAM_ASSUMES,
      "what the program reads there and only a real GPU knows: a number, true or false, or several in turn "
      "(true*12,false); repeatable"),
    FIELD("--gpus", "N", X, number, program.gpus, PLIM_PROGRAM_GPUS,
      "simulated GPUs that the program sees; default: 1"),
    KEY("--effective-batch", "N", T | P | E | X, "train.effective_batch",
      "samples an optimizer step, to be kept"),
    KEY("--effective-batch-tolerance", "SHARE", T | P | E | X, "train.effective_batch_tolerance",
      "how far it may be missed, such as 2%; default: 0"),
    KEY("--accumulation", "N", T | P | E | X, "train.accumulation",
      "micro-steps an optimizer step; default: follows, or 1"),
    KEY("--world", "N", T | P | E | X, "train.world",
      "data-parallel GPUs; default: 1, of a program those of --gpus"),
    KEY("--gpus-per-node", "N", T | P | E, "train.gpus_per_node",
      "GPUs of one machine; default: 8 (train.node_gb_per_second is what machines send)"),
    KEY("--host-speed", "X", T | P | E, "train.host_speed",
      "how fast the processor launches operations: 1 takes 20 us in forward and 12 in backward; of a recording "
      "also recorded; default: 1, in doubt"),
    FIELD("--framework-python", "PYTHON", T | P | E, text, framework_python, 0,
      "measure --host-speed here, with ten steps of a small model by this Python's PyTorch (some ten seconds, "
      "once)"),
    KEY("--precision", "NAME", T | P | E | X | W, "train.precision",
      "a list is searched; mixed is autocast"),
    KEY("--weights", "NAME", T | P | E, "train.weights",
      "type of the stored weights; a list is searched"),
    KEY("--optimizer", "NAME", T | P | E, "train.optimizer",
      "a list is searched"),
    KEY("--checkpointing", "NAME", T | P | E, "train.checkpointing",
      "a list is searched; default: none,full"),
    KEY("--use-reentrant", "BOOL", T | P | E, "train.use_reentrant",
      "with checkpointing: as torch.utils.checkpoint's; default: false"),
    KEY("--attention", "NAME", T | P | E, "train.attention",
      "a list is searched; default: sdpa (bloom: eager)"),
    KEY("--torch", "VERSION", T | P | E, "train.torch",
      "whose allocations are replayed; default: 2.11"),
    KEY("--transformers", "VERSION", T | P | E, "train.transformers",
      "whose models are replayed; default: 5.17"),
    KEY("--liger", "BOOL", T | P | E, "train.liger",
      "true: liger-kernel's kernels, as transformers' use_liger_kernel; a list is searched; default: false"),
    KEY("--sharding", "NAME", T | P | E, "train.sharding",
      "a list is searched; default: ddp (DistributedDataParallel) where --world is above 1"),
    KEY("--reduction", "NAME", T | P | E, "train.reduction",
      "micro-steps that reduce the gradients over the GPUs; default: last (no_sync before it)"),
    KEY("--packing", "NAME", T | P | E, "data.packing",
      "yes: several documents in a row; one-row: the micro-batch is one row"),
    KEY("--padding", "NAME", T | P | E, "data.padding",
      "have the rows of a batch different lengths? (an attention mask)"),
    KEY("--made-on", "NAME", T | P | E, "train.made_on",
      "where the model is made; default: host"),
    KEY("--loop", "NAME", T | P | E, "train.loop",
      "what runs the steps: a plain loop, transformers' Trainer, or one of TRL's trainers, axolotl's or "
      "LLaMA-Factory's"),
    KEY("--evaluation", "LIST", T | P | E, "train.evaluation",
      "with --loop trainer: batch=8,keeps=logits,batches=40; default: none"),
    KEY("--label-smoothing", "FACTOR", T | P | E, "train.label_smoothing",
      "with --loop trainer: its label_smoothing_factor, such as 0.1; default: 0"),
    KEY("--clip", "NORM", T | P | E, "train.clip",
      "clip_grad_norm_ to this norm, such as 1.0; default: no clipping"),
    KEY("--dropout", "P", T | P | E, "train.dropout",
      "every dropout of the model, such as 0; default: the model's own"),
    KEY("--lora", "LIST", T | P | E, "train.lora",
      "r=16,targets=q_proj+v_proj,dropout=0,dora=true; default: all parameters"),
    KEY("--quantization", "LIST", T | P | E, "train.quantization",
      "the base below LoRA, by bitsandbytes: nf4,double=true,compute=bf16, fp4 or int8; default: none"),
    OTHER("--set", "KEY=VALUE", T | P | E | I, any_key,
      "any key of the spec, such as train.clip=1.0"),
    OTHER("--margin", "SIZE", T | P | E | X, margin,
      "memory to leave free: a share such as 5% (default) or 2GiB"),
    OTHER("--overhead", "SIZE", T | P | E | X, overhead,
      "what the framework takes beside tensors: auto (default, an estimate) or 600MiB"),
    OTHER("--alloc-conf", "CONF", T | P | E, alloc_conf,
      "allocator options as PyTorch's, such as expandable_segments:True; default: "
      "PYTORCH_CUDA_ALLOC_CONF"),
    OTHER("--objective", "NAME", T | P, objective,
      "throughput (default), balanced, longest-sequence, least-memory, largest-batch"),
    OTHER("--profile", "NAME", T | P | X, profile,
      "max-memory: what needs least, margin 10%; balanced: of what is within 10% of the fastest the "
      "least memory, margin 5%; max-speed: the fastest, margin 2%; --objective and --margin count "
      "beside it"),
    SWITCH("--tiers", T | P | X, tiers,
      "four answers in one, by how much memory stays free: safe (20%), medium (10%), aggressive (5%), "
      "max (none)"),
    FIELD("--waterfall", "AXIS,AXIS", T | P | X, text, waterfall, 0,
      "what to give up until something fits: of each axis in turn its values in their order, such as "
      "--waterfall precision,seq with --precision fp32,bf16-mixed --seq 2048,1024"),
    OTHER("--sort", "NAME", T | P | X, order,
      "rows of the table of settings: speed (default), memory, batch, or given, as they were asked for; of several "
      "devices too, which by default are listed as given"),
    FIELD("--budget", "TIME", T | P | X | W, seconds, budget_seconds, 0,
      "end the search after 60s, 500ms, 5m with the best so far"),
    FIELD("--out", "FILE", T | P | E | I | X | R, list, files, 0,
      "write the report there too (-o): .json, .yaml, .csv, .md, .txt, a page with charts as .html, "
      "the charts as .svg or .png; repeatable"),
    FIELD("--out", "FILE.plim", W, list, files, 0,
      "the recording (-o)"),
    SWITCH("--timeline", T | P | E, timeline,
      "keep in the JSON what is allocated during a step, for plimsoll report"),
    OTHER("--price", "GPU=AMOUNT", R, price,
      "what an hour of a GPU costs, such as RTX-4090=0.69: tokens for it; repeatable"),
    SWITCH("--compare", R, compare,
      "tell each speed as a share of the first result's"),
    FIELD("--for", "TIME", X | W, seconds, program.run_seconds, 0,
      "a trial goes well for 60s, 5m, whether or not its peak still grows"),
    FIELD("--steps", "N", X | W, number, program.steps, 1000000,
      "a trial goes well for N training steps, whether or not its peak still grows"),
    FIELD("--repetitions", "N", X | W | T | P, number, program.repetitions, 1000000,
      "a trial has gone well when its peak has not grown for N steps, or short epochs; default: 5"),
    FIELD("--epoch-steps", "N", X | T | P, number, program.epoch_steps, 1000000,
      "of a trial: end each loop over a PyTorch data loader after N training steps and its last batch, so that the "
      "trial sees the evaluation and what else comes after an epoch"),
    FIELD("--timeout", "TIME", X | W | T | P, seconds, program.limit_seconds, 0,
      "a trial that takes longer has failed; default: 10m"),
    FIELD("--jobs", "N", X, number, program.jobs, 64,
      "trials at once; default: 1; on a real GPU always 1"),
    FIELD("--logs", "DIR", X | W | T | P, text, program.logs, 0,
      "keep the output of every trial there; default: nothing is kept"),
    SWITCH("--prove", T | P, prove,
      "of a recording: run its program at the choice and at the next larger batch, on one device"),
    FIELD("--prove-with", "CMD", T | P, text, prove_with, 0,
      "run what is planned for a spec by your own command, on one device: \"python train.py --bs {batch} "
      "--accum {accumulation}\"; also {seq}, {precision}, {checkpointing}, ... of lists"),
    SWITCH("--dry-run", X, program.dry_run,
      "print the command of a trial, and run nothing"),
    SWITCH("--observe", X, program.observe,
      "run the command once, and report its memory"),
    FIELD("--device", "NAME", A | F, devices, devices, 0,
      "whose answer, where RESULT is a plan of several GPUs"),
    FIELD("--tier", "NAME", A | F, text, apply.tier, 0,
      "which answer, where RESULT has several by their margins: safe, medium, aggressive or max"),
    FIELD("--micro-batch", "N", A | F, number, apply.micro_batch, 1000000000,
      "samples of one GPU at once, instead of a RESULT"),
    FIELD("--accumulation", "N", A | F, number, apply.accumulation, 1000000000,
      "micro-steps an optimizer step; default: 1"),
    FIELD("--seq", "N", A | F, number, apply.seq, 1000000000,
      "sequence length, where the framework keeps one there; default: the answer's"),
    FIELD("--dp", "N", A | F, number, apply.dp, 1000000,
      "data-parallel GPUs: all / (tensor x pipeline x context x sequence parallel)"),
    FIELD("--tokens", "N", A, number, apply.tokens, 1000000000000,
      "the micro-batch in tokens or frames, for a file that counts these"),
    FIELD("--framework", "NAME", A, text, apply.framework, 0,
      "whose file it is; default: told by its keys"),
    FIELD("--select", "SECTION", A, text, apply.select, 0,
      "which section, line (its branch of a script) or (Hydra) group=name, where several could be meant"),
    FIELD("--set", "PATH=NAME", A, pairs, apply.sets, 16,
      "the key of any other program: training.bs=micro_batch, x.y=accumulation, =global_batch, "
      "=seq; repeatable"),
    FIELD("--format", "NAME", A, text, apply.format, 0,
      "yaml, json, jsonc, toml, ini, shell, python, notebook or gin; default: by the file's name"),
    FIELD("--gpus-per-node", "N", F, number, emit.gpus_per_node, 1024,
      "GPUs of one machine, for launchers; default: those of the result, or 8"),
    FIELD("--out", "FILE", F, list, files, 0,
      "write it there (-o), and not to stdout; repeatable"),
    SWITCH("--list", F, emit.list,
      "the frameworks and launchers, with their forms"),
    FIELD("--emit", "NAME", T | P | X, text, emit.name, 0,
      "print the answer as a framework's arguments or config, such as hf.cli or deepspeed "
      "(plimsoll emit --list), and not the report"),
    SWITCH("--check", A, apply.check,
      "write nothing: print what would change; exit code 7 when something would"),
    SWITCH("--force", U, apply.force,
      "restore also a file that was changed since"),
    FIELD("--steps", "N", E, number, steps, 1000000,
      "replay N training steps; default: until they repeat, so that it fits for ever"),
    FIELD("--trace", "FILE", E, text, trace, 0,
      "write every allocation and free there, to hold beside PyTorch's "
      "(scripts/compare-traces)"),
    FIELD("--format", "NAME", V, text, store.format, 0,
      "sh (default), fish, json, dotenv or args"),
    FIELD("--name", "VALUE=NAME", V, list, store.names, 0,
      "another name for a value, beside the usual one: micro_batch=MICRO_BATCH_SIZE; repeatable"),
    FIELD("--on-miss", "WHAT", V, text, store.on_miss, 0,
      "where no answer is kept: plan (default), tune or nothing"),
    SWITCH("--per-rank", V, store.per_rank,
      "each rank for its own GPU (LOCAL_RANK, SLURM_LOCALID); default: one answer that fits on all "
      "GPUs here"),
    SWITCH("--explain-miss", T | X | V, store.explain_miss,
      "say in what the nearest answers differ"),
    SWITCH("--strict", V, store.strict,
      "fail if there is no answer"),
    SWITCH("--task-prolog", V, store.task_prolog,
      "speak the protocol of Slurm's TaskProlog: nothing outside a step, nothing on stderr, and one "
      "second unless --budget or --on-miss tune is given"),
    SWITCH("--root-owned", V, store.root_owned,
      "for hooks that run as root: only look up, and only in a site's store that only root may "
      "write"),
    SWITCH("--no-store", T | P | E | X, store.off,
      "neither take a kept answer nor keep one"),
    SWITCH("--fresh", T | P | E | X, store.fresh,
      "ask again where an answer is kept, and measure again what is kept of this machine"),
    FIELD("--wait", "TIME", T | X, seconds, store.wait_seconds, 0,
      "for another plimsoll that measures on the same GPU; default: 10m"),
    FIELD("--site-store", "DIR", T | P | X | V | S, text, store.site, 0,
      "a store that is only read; default: /etc/plimsoll/store"),
    FIELD("--older-than", "TIME", S, seconds, store.oldest_seconds, 0,
      "gc removes answers that were made before that, such as 2160h"),
    SWITCH("--json", T | P | E | D | X | R | S, json,
      "the report as JSON"),
    SWITCH("--quiet", T | P | E | D | M | I | X | W | R | V | S | A | U | F, quiet,
      "no progress and no warnings"),
    SWITCH("--no-color", T | P | E | D | X | R | S, no_color,
      "no escapes, as with NO_COLOR"),
    SWITCH("--man", H, man,
      "the manual page instead, as man reads it (roff)"),
    SWITCH("--help", T | P | E | D | M | I | X | W | R | V | S | A | U | F | C | H, help,
      "this text"),
};

/* clang-format on */

enum { OPTION_COUNT = sizeof(options) / sizeof(options[0]) };

/* Returns the bits of the commands whose options a command takes. */
static unsigned taken_by(enum plim_command_id command, bool is_program)
{
    if (command == PLIM_COMMAND_ENV) return is_program ? V | X : V | T | P;
    return 1u << command;
}

/* --- parsing ---------------------------------------------------------------------------------- */

static enum plim_status unknown_option(const char *text, size_t length, unsigned commands,
                                       struct plim_error *err)
{
    const char *names[OPTION_COUNT];
    char word[64];
    size_t count = 0;
    snprintf(word, sizeof(word), "%.*s", (int)(length < sizeof(word) ? length : sizeof(word) - 1),
             text);
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (options[i].commands & commands) names[count++] = options[i].name;
    int near = plim_nearest(word, names, count);
    if (near < 0)
        return plim_fail(err, PLIM_INVALID, "%s: unknown option (--help lists them)", word);
    return plim_fail(err, PLIM_INVALID, "%s: unknown option, did you mean %s?", word, names[near]);
}

static enum plim_status find_option(const char *text, size_t length, unsigned commands,
                                    const struct plim_option **out, struct plim_error *err)
{
    const struct plim_option *other = NULL; /* of other commands */
    if (!strcmp(text, "-h")) text = "--help", length = strlen(text);
    if (!strcmp(text, "-o")) text = "--out", length = strlen(text);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        *out = &options[i];
        if (strlen(options[i].name) != length || strncmp(options[i].name, text, length)) continue;
        if (options[i].commands & commands) return PLIM_OK;
        other = &options[i];
    }
    if (other)
        return plim_fail(err, PLIM_INVALID,
                         "%s does not go with this command (--help lists what does)", other->name);
    return unknown_option(text, length, commands, err);
}

static enum plim_status set_subject(struct plim_request *request, const char *text,
                                    enum plim_command_id command, bool is_program,
                                    struct plim_error *err)
{
    if (is_program)
        return plim_fail(err, PLIM_INVALID,
                         "'%s' is not an option of plimsoll; put -- before your program's command: plimsoll exec ... "
                         "-- %s",
                         text, text);
    if (!request->subject) {
        request->subject = text;
        return PLIM_OK;
    }
    bool has_room = request->arguments.count < PLIM_REQUEST_LIST;
    if (!has_room || !(TAKES_SEVERAL >> command & 1))
        return plim_fail(err, PLIM_INVALID, "'%s' is one argument too many after '%s'", text,
                         request->subject);
    request->arguments.items[request->arguments.count++] = text;
    return PLIM_OK;
}

/* Reads the option at argv[*i] and its value, which may be the next argument. */
static enum plim_status read_option(int argc, char **argv, int *i, unsigned commands,
                                    struct plim_request *request, struct plim_error *err)
{
    const struct plim_option *option;
    const char *text = argv[*i];
    size_t length = strcspn(text, "=");
    bool joined = text[length] == '=';
    enum plim_status st = find_option(text, length, commands, &option, err);
    if (st) return st;
    if (joined && !option->argument)
        return plim_fail(err, PLIM_INVALID, "%s takes no value", option->name);
    if (!joined && option->argument && ++*i == argc)
        return plim_fail(err, PLIM_INVALID, "%s needs a value, expected %s %s", option->name,
                         option->name, option->argument);
    return option->kind(request, option, joined ? text + length + 1 : argv[*i], err);
}

/* Checks combinations of options, and applies the profile. */
static enum plim_status settle(struct plim_request *request, enum plim_command_id command,
                               struct plim_error *err)
{
    const struct plim_profile *profile = request->profile;
    const char *other = request->allowance.margin_given ? "--margin" : NULL;
    if (request->emit.name) other = "--emit";
    if (request->tiers && command == PLIM_COMMAND_ENV)
        return plim_fail(err, PLIM_INVALID, "--tiers gives several answers, env hands over one");
    if (request->tiers && other)
        return plim_fail(err, PLIM_INVALID, "--tiers and %s, expected one of them", other);
    if (!profile) return PLIM_OK;
    if (!request->objective_given) request->objective = profile->objective;
    if (!request->allowance.margin_given) request->allowance.margin_share = profile->margin_share;
    return PLIM_OK;
}

enum plim_status plim_options_parse(int argc, char **argv, enum plim_command_id command,
                                    struct plim_request *request, struct plim_error *err)
{
    bool options_end = false, is_program = command == PLIM_COMMAND_EXEC || command == PLIM_COMMAND_RECORD;
    for (int i = 0; i < argc && command == PLIM_COMMAND_ENV; i++)
        is_program |= !strcmp(argv[i], "--");
    const unsigned commands = taken_by(command, is_program);
    enum plim_status st = PLIM_OK;
    *request = (struct plim_request){.allowance = PLIM_ALLOWANCE_DEFAULT};
    for (int i = 0; i < argc && !st; i++) {
        bool is_option = !options_end && argv[i][0] == '-' && argv[i][1];
        if (!is_option) {
            st = set_subject(request, argv[i], command, is_program, err);
        } else if (strcmp(argv[i], "--")) {
            st = read_option(argc, argv, &i, commands, request, err);
        } else if (is_program) {
            request->program.command = argv + i + 1;
            break;
        } else {
            options_end = true;
        }
    }
    return st ? st : settle(request, command, err);
}

/* --- help ------------------------------------------------------------------------------------- */

enum { HELP_COLUMN = 22, HELP_END = 80 };

void plim_help_print_wrapped(FILE *out, int column, const char *text)
{
    if (column >= HELP_COLUMN) fprintf(out, "\n"), column = 0;
    while (*text) { /* broken at blanks */
        size_t room = HELP_END - HELP_COLUMN, length = strlen(text);
        if (length > room)
            for (length = room; length > 1 && text[length] != ' ';) length--;
        fprintf(out, "%*s%.*s\n", HELP_COLUMN - column, "", (int)length, text);
        text += length + (text[length] == ' ');
        column = 0;
    }
}

const struct plim_option *plim_options_next(enum plim_command_id command,
                                            const struct plim_option *before)
{
    for (size_t i = before ? (size_t)(before - options) + 1 : 0; i < OPTION_COUNT; i++)
        if (options[i].commands >> command & 1) return &options[i];
    return NULL;
}

/* The values of a key of the spec are those of its enumeration. */
void plim_options_describe(const struct plim_option *option, char *out, size_t size)
{
    const struct plim_spec_key *key = option->key ? plim_spec_key_find(option->key) : NULL;
    char names[128] = "";
    if (key) plim_join_names(key->value.names, key->value.name_count, names, sizeof(names));
    snprintf(out, size, "%s%s%s", names, names[0] ? "; " : "", option->help);
}

void plim_options_help(enum plim_command_id command, FILE *out)
{
    char help[512];
    const struct plim_option *option = NULL;
    while ((option = plim_options_next(command, option))) {
        const char *argument = option->argument ? option->argument : "";
        int column = fprintf(out, "  %s%s%s", option->name, *argument ? " " : "", argument);
        plim_options_describe(option, help, sizeof(help));
        plim_help_print_wrapped(out, column, help);
    }
}
