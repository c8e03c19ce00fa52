#include "tables.h"
#include "numbers.h"
#include <inttypes.h>
#include <strings.h>

/* --- values in words -------------------------------------------------------------------------- */

static void append(char *out, size_t size, const char *before, const char *name, const char *text)
{
    size_t used = strlen(out);
    snprintf(out + used, size - used, "%s%s%s%s", used ? before : "", name, *name ? " " : "", text);
}

/* Precisions and optimizers are known by their names; other values are said with theirs. */
static const char *name_before(const char *axis)
{
    bool known = !strcmp(axis, "precision") || !strcmp(axis, "optimizer");
    return known ? "" : axis;
}

static bool is_worth_saying(const char *axis, const char *text)
{
    return *text && !(!strcmp(axis, "sharding") && !strcmp(text, "none"));
}

void plim_table_values(const struct plim_result_setting *setting, char *out, size_t size)
{
    out[0] = '\0';
    for (size_t i = 0; i < setting->value_count; i++) {
        const struct plim_result_value *value = &setting->values[i];
        if (is_worth_saying(value->name, value->text))
            append(out, size, ", ", name_before(value->name), value->text);
    }
}

const char *plim_table_failure(const struct plim_result *result)
{
    return result->is_program && result->unsupported     ? "no GPU was used"
           : result->unsupported                         ? "cannot be planned"
           : result->is_program && result->ended == PLIM_LOST ? "the program fails"
           : result->interrupted                         ? "no answer yet"
                                                         : "nothing fits";
}

/* --- which values are columns ----------------------------------------------------------------- */

/* The settings of a table's rows, and of their axes those whose values differ. */
struct axes {
    const struct plim_result_setting **settings; /* by row; NULL: the row has none */
    size_t rows, count;
    const char *column[PLIM_RESULT_VALUES]; /* an axis by name */
    bool seq_is_column;
};

static const char *title_of(const char *axis)
{
    return !strcmp(axis, "checkpointing") ? "ckpt" : axis;
}

static void find_columns(struct axes *axes, char common[PLIM_TABLE_LINE])
{
    const struct plim_result_setting *first = NULL;
    char seq[32];
    common[0] = '\0';
    for (size_t i = 0; i < axes->rows; i++) {
        if (!axes->settings[i]) continue;
        if (!first) first = axes->settings[i];
        axes->seq_is_column |= axes->settings[i]->seq != first->seq;
    }
    if (!first) return;
    snprintf(seq, sizeof(seq), "%" PRId64, first->seq);
    if (first->seq && !axes->seq_is_column) append(common, PLIM_TABLE_LINE, ", ", "sequence", seq);
    for (size_t v = 0; v < first->value_count; v++) {
        const char *name = first->values[v].name, *text = first->values[v].text;
        bool differs = false;
        for (size_t i = 0; i < axes->rows && !differs; i++)
            differs = axes->settings[i] && strcmp(plim_result_value(axes->settings[i], name), text);
        if (differs) axes->column[axes->count++] = name;
        else if (is_worth_saying(name, text))
            append(common, PLIM_TABLE_LINE, ", ", name_before(name), text);
    }
}

static void add_columns(const struct axes *axes, struct plim_grid *grid)
{
    if (axes->seq_is_column) plim_grid_column(grid, "sequence", true);
    for (size_t i = 0; i < axes->count; i++)
        plim_grid_column(grid, title_of(axes->column[i]), false);
}

static void add_cells(const struct axes *axes, const struct plim_result_setting *setting,
                      struct plim_grid *grid)
{
    char seq[32] = "";
    if (setting->seq) snprintf(seq, sizeof(seq), "%" PRId64, setting->seq);
    if (axes->seq_is_column) plim_grid_cell(grid, seq);
    for (size_t i = 0; i < axes->count; i++)
        plim_grid_cell(grid, plim_result_value(setting, axes->column[i]));
}

/* --- what a choice achieves ------------------------------------------------------------------- */

/* Of what are the rates? A row that has a sequence length says it. */
static bool has_seq(const struct axes *axes)
{
    for (size_t i = 0; i < axes->rows; i++)
        if (axes->settings[i] && axes->settings[i]->seq) return true;
    return false;
}

static const char *rate_unit(const struct axes *axes)
{
    return plim_result_rate_unit(&(struct plim_result_setting){.seq = has_seq(axes)});
}

static void add_result_columns(const struct axes *axes, struct plim_grid *grid, bool has_rates)
{
    plim_grid_column(grid, "batch x acc", true);
    if (has_rates) plim_grid_column(grid, rate_unit(axes), true);
    plim_grid_column(grid, "peak", true);
}

/* A setting that was explained has a rate also where it does not `fit`, which no GPU will show. */
static void add_result_cells(const struct plim_result_choice *choice, bool fits, struct plim_grid *grid,
                             bool has_rates)
{
    char text[PLIM_NUMBER];
    plim_grid_cell(grid, plim_number_batch(&choice->setting, text));
    if (has_rates && !fits)
        plim_grid_cell(grid, "does not fit");
    else if (has_rates && plim_result_rate(choice) > 0)
        plim_grid_cell(grid, plim_number_rate(plim_result_rate(choice), text));
    else if (has_rates)
        plim_grid_cell(grid, "-");
    plim_grid_cell(grid, plim_number_bytes(choice->peak.device_bytes, text));
}

static bool any_rate(const struct plim_result *result)
{
    for (size_t i = 0; i < result->points.count; i++)
        if (plim_result_rate(&result->points.items[i].best) > 0) return true;
    return false;
}

/* --- settings --------------------------------------------------------------------------------- */

static void point_note(const struct plim_result_point *point, char *out, size_t size)
{
    char number[PLIM_NUMBER];
    out[0] = '\0';
    if (!strcmp(point->verdict, "untried")) {
        snprintf(out, size, "not searched: %s", point->why);
    } else if (point->short_bytes > 0) {
        snprintf(out, size, "does not fit: up to %s short",
                 plim_number_bytes(point->short_bytes, number));
    } else {
        snprintf(out, size, "%s%s%s",
                 !strcmp(point->verdict, "oom") ? "does not fit" : point->verdict,
                 point->why[0] ? ": " : "", point->why);
    }
}

void plim_table_points(const struct plim_result *result, struct plim_grid *grid,
                       char common[PLIM_TABLE_LINE])
{
    struct axes axes = {.rows = result->points.count};
    bool has_rates = any_rate(result);
    char note[PLIM_RESULT_LINE + 32];
    axes.settings = calloc(axes.rows + 1, sizeof(struct plim_result_setting *));
    if (!axes.settings) {
        grid->failed = true;
        return;
    }
    for (size_t i = 0; i < axes.rows; i++)
        axes.settings[i] = &result->points.items[i].best.setting;
    find_columns(&axes, common);
    plim_grid_column(grid, " ", false);
    add_columns(&axes, grid);
    add_result_columns(&axes, grid, has_rates);
    for (size_t i = 0; i < axes.rows; i++) {
        const struct plim_result_point *point = &result->points.items[i];
        plim_grid_row(grid, point->chosen);
        plim_grid_cell(grid, point->chosen ? "*" : " ");
        add_cells(&axes, axes.settings[i], grid);
        point_note(point, note, sizeof(note));
        if (point->best.present) add_result_cells(&point->best, true, grid, has_rates);
        else plim_grid_note(grid, note);
    }
    free(axes.settings);
}

/* --- samples ---------------------------------------------------------------------------------- */

void plim_table_samples(const struct plim_result *result, struct plim_grid *grid,
                        char common[PLIM_TABLE_LINE])
{
    struct axes axes = {.rows = result->samples.count};
    char text[PLIM_NUMBER];
    axes.settings = calloc(axes.rows + 1, sizeof(struct plim_result_setting *));
    if (!axes.settings) {
        grid->failed = true;
        return;
    }
    for (size_t i = 0; i < axes.rows; i++) axes.settings[i] = &result->samples.items[i].setting;
    find_columns(&axes, common);
    add_columns(&axes, grid);
    plim_grid_column(grid, "batch x acc", true);
    plim_grid_column(grid, "verdict", false);
    plim_grid_column(grid, "peak", true);
    plim_grid_column(grid, "a step", true);
    for (size_t i = 0; i < axes.rows; i++) {
        const struct plim_result_sample *sample = &result->samples.items[i];
        plim_grid_row(grid, false);
        add_cells(&axes, axes.settings[i], grid);
        plim_grid_cell(grid, plim_number_batch(&sample->setting, text));
        plim_grid_cell(grid, sample->verdict);
        plim_grid_cell(grid, sample->peak.device_bytes
                                 ? plim_number_bytes(sample->peak.device_bytes, text) : "-");
        plim_grid_cell(grid, sample->seconds > 0
                                 ? plim_number_seconds(sample->seconds, text) : "-");
    }
    free(axes.settings);
}

/* --- devices ---------------------------------------------------------------------------------- */

static void device_note(const struct plim_result *result, char *out, size_t size)
{
    char number[PLIM_NUMBER];
    int used = snprintf(out, size, "%s", plim_table_failure(result));
    if (result->short_bytes > 0)
        snprintf(out + used, size - (size_t)used, ": up to %s short",
                 plim_number_bytes(result->short_bytes, number));
}

/* What a page's table has besides: columns that only some reports have something for. */
struct extras {
    const struct plim_style *style; /* its prices */
    bool models, tiers, power, prices;
    double first; /* the rate that others are compared with, the first that fits; 0: they are not */
    bool first_fits; /* the first of all, too */
};

static const struct plim_price *price_of(const struct plim_result *result,
                                         const struct plim_style *style)
{
    for (size_t i = 0; style && i < style->price_count; i++)
        if (!strcasecmp(style->prices[i].device, result->device.name)) return &style->prices[i];
    return NULL;
}

static bool differs_in_model(const struct plim_report *report, size_t index)
{
    const char *name = report->results.items[index].spec.name;
    return *name && strcmp(name, report->results.items[0].spec.name) != 0;
}

static bool fits(const struct plim_result *result)
{
    return result->kind != PLIM_RESULT_EXPLANATION || result->fits;
}

static double achieved_rate(const struct plim_result *result)
{
    return fits(result) ? plim_result_rate(&result->choice) : 0;
}

static struct extras find_extras(const struct plim_report *report, const struct plim_style *style)
{
    struct extras extras = {.style = style, .first_fits = !report->results.count || fits(&report->results.items[0])};
    bool compares = style && style->compares && report->results.count > 1;
    for (size_t i = 0; i < report->results.count; i++) {
        const struct plim_result *result = &report->results.items[i];
        extras.models |= differs_in_model(report, i);
        extras.tiers |= result->tier != NULL;
        extras.power |= result->device.tdp_watts > 0;
        extras.prices |= price_of(result, style) != NULL;
        if (compares && (i == 0 || (!extras.first_fits && extras.first <= 0))) extras.first = achieved_rate(result);
    }
    extras.power &= style && style->tells_power;
    return extras;
}

static void rate_cell(struct plim_grid *grid, double rate, double by, int digits)
{
    char text[PLIM_NUMBER] = "-";
    if (rate > 0 && by > 0) snprintf(text, sizeof(text), "%.*f", digits, rate / by);
    plim_grid_cell(grid, text);
}

/* Rates are of all GPUs, power and price of one. */
static void add_extra_cells(const struct extras *extras, const struct plim_result *result,
                            struct plim_grid *grid)
{
    const struct plim_price *price = price_of(result, extras->style);
    double rate = achieved_rate(result), world = (double)result->choice.world;
    if (extras->first > 0) rate_cell(grid, 100 * rate, extras->first, 1);
    if (extras->power) rate_cell(grid, rate, world * result->device.tdp_watts, 1);
    if (extras->prices) rate_cell(grid, rate * 3600 / 1e6, world * (price ? price->amount : 0), 1);
}

static void compare_devices(const struct plim_report *report, const struct extras *extras,
                            struct plim_grid *grid, char common[PLIM_TABLE_LINE])
{
    struct axes axes = {.rows = report->results.count};
    char text[64], gpus[PLIM_RESULT_GPUS];
    axes.settings = calloc(axes.rows + 1, sizeof(struct plim_result_setting *));
    if (!axes.settings) {
        grid->failed = true;
        return;
    }
    for (size_t i = 0; i < axes.rows; i++)
        if (report->results.items[i].choice.present)
            axes.settings[i] = &report->results.items[i].choice.setting;
    find_columns(&axes, common);
    if (extras->models) plim_grid_column(grid, "model", false);
    if (extras->tiers) plim_grid_column(grid, "tier", false);
    plim_grid_column(grid, "device", false);
    plim_grid_column(grid, "memory", true);
    add_columns(&axes, grid);
    add_result_columns(&axes, grid, true);
    if (extras->first > 0)
        plim_grid_column(grid, extras->first_fits ? "% of the first" : "% of the first that fits", true);
    bool of_tokens = has_seq(&axes);
    if (extras->power)
        plim_grid_column(grid, of_tokens ? "tokens/s a watt" : "samples/s a watt", true);
    if (extras->prices)
        plim_grid_column(grid, of_tokens ? "million tokens a unit of price"
                                         : "million samples a unit of price", true);
    for (size_t i = 0; i < axes.rows; i++) {
        const struct plim_result *result = &report->results.items[i];
        plim_grid_row(grid, false);
        if (extras->models) plim_grid_cell(grid, result->spec.name);
        if (extras->tiers) plim_grid_cell(grid, result->tier ? result->tier : "-");
        plim_grid_cell(grid, plim_result_gpus(&result->device, gpus));
        plim_grid_cell(grid, plim_number_bytes(result->device.total_bytes, text));
        device_note(result, text, sizeof(text));
        if (result->choice.present) {
            add_cells(&axes, axes.settings[i], grid);
            add_result_cells(&result->choice, fits(result), grid, true);
            add_extra_cells(extras, result, grid);
        } else {
            plim_grid_note(grid, text);
        }
    }
    free(axes.settings);
}

const char *plim_table_title(const struct plim_report *report)
{
    const struct extras extras = find_extras(report, NULL);
    return extras.models ? "several models" : report->results.items[0].spec.name;
}

void plim_table_devices(const struct plim_report *report, const struct plim_style *style,
                         struct plim_grid *grid, char common[PLIM_TABLE_LINE])
{
    const struct extras extras = find_extras(report, style);
    compare_devices(report, &extras, grid, common);
}

/* What fits stands first, and asks least; where nothing does, what comes nearest. */
static const struct plim_result_advice *best_advice(const struct plim_result *result)
{
    const struct plim_result_advice *best = &result->advice.items[0];
    for (size_t i = 1; i < result->advice.count && !best->fits; i++)
        if (result->advice.items[i].peak.device_bytes < best->peak.device_bytes)
            best = &result->advice.items[i];
    return best;
}

bool plim_table_shows(double seconds, double whole)
{
    return seconds >= whole / 1000;
}

static void add_task(struct plim_grid *grid, const char *words, double seconds, double whole)
{
    char text[PLIM_NUMBER];
    if (!plim_table_shows(seconds, whole)) return;
    plim_grid_row(grid, false);
    plim_grid_cell(grid, words);
    plim_grid_cell(grid, plim_number_seconds(seconds, text));
    snprintf(text, sizeof(text), "%.1f %%", 100 * seconds / whole);
    plim_grid_cell(grid, text);
}

void plim_table_time(const struct plim_result *result, struct plim_grid *grid)
{
    double whole = plim_result_time_all(&result->time);
    if (whole <= 0) return;
    plim_grid_column(grid, "task", false);
    plim_grid_column(grid, "time", true);
    plim_grid_column(grid, "share", true);
#define TASK(name, words) add_task(grid, words, result->time.name##_seconds, whole);
    PLIM_RESULT_TIME_MAP(TASK)
#undef TASK
}

void plim_table_device_advice(const struct plim_report *report, struct plim_grid *grid)
{
    char peak[PLIM_NUMBER], gpus[PLIM_RESULT_GPUS];
    plim_grid_column(grid, "device", false);
    plim_grid_column(grid, "then", false);
    plim_grid_column(grid, "needs", true);
    plim_grid_column(grid, "change", false);
    for (size_t i = 0; i < report->results.count; i++) {
        const struct plim_result *result = &report->results.items[i];
        if (result->choice.present || !result->advice.count) continue;
        const struct plim_result_advice *advice = best_advice(result);
        plim_grid_row(grid, false);
        plim_grid_cell(grid, plim_result_gpus(&result->device, gpus));
        plim_grid_cell(grid, advice->fits ? "fits" : "too large");
        plim_grid_cell(grid, plim_number_bytes(advice->peak.device_bytes, peak));
        plim_grid_note(grid, advice->change);
    }
}
