#include "devices/allocator/allocator.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <criterion/parameterized.h>

static struct plim_allocator_config parsed(const char *text)
{
    struct plim_allocator_config config;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_allocator_config_parse(text, &config, &err), PLIM_OK), "%s: %s", text,
              err.text);
    return config;
}

Test(allocator_config, nothing_gives_the_defaults)
{
    struct plim_allocator_config config;
    cr_expect(eq(int, plim_allocator_config_parse(NULL, &config, NULL), PLIM_OK));
    cr_expect(not(config.expandable_segments));
    cr_expect(eq(i64, config.large_segment_size, 20971520));
    cr_expect(eq(i64, config.max_split_size, INT64_MAX));
    cr_expect(eq(i64, config.max_non_split_rounding, 20971520));
    cr_expect(eq(dbl, config.garbage_collection_threshold, 0));
    cr_expect(eq(dbl, config.memory_fraction, 0));
    cr_expect(eq(i64, config.roundup_power2_divisions[0], 0));
}

Test(allocator_config, every_option_is_read)
{
    struct plim_allocator_config config =
        parsed("expandable_segments:True,large_segment_size_mb:30,max_split_size_mb:128,"
               "max_non_split_rounding_mb:40,garbage_collection_threshold:0.8,"
               "per_process_memory_fraction:0.5,roundup_power2_divisions:4");
    cr_expect(config.expandable_segments);
    cr_expect(eq(i64, config.large_segment_size, (int64_t)30 << 20));
    cr_expect(eq(i64, config.max_split_size, (int64_t)128 << 20));
    cr_expect(eq(i64, config.max_non_split_rounding, (int64_t)40 << 20));
    cr_expect(eq(dbl, config.garbage_collection_threshold, 0.8));
    cr_expect(eq(dbl, config.memory_fraction, 0.5));
    for (int i = 0; i < 16; i++) cr_expect(eq(i64, config.roundup_power2_divisions[i], 4));
}

Test(allocator_config, blanks_and_a_comma_at_the_end_do_not_matter)
{
    cr_expect(eq(i64, parsed(" max_split_size_mb : 1 28 ,").max_split_size, (int64_t)128 << 20));
}

Test(allocator_config, what_concerns_no_device_memory_is_accepted)
{
    parsed("backend:native,pinned_use_background_threads:True,pinned_num_register_threads:4,"
           "release_lock_on_cudamalloc:True,graph_capture_record_stream_reuse:True");
}

Test(allocator_config, slack_defaults_to_the_segment_size)
{
    struct plim_allocator_config config = parsed("max_split_size_mb:100,large_segment_size_mb:60");
    cr_expect(eq(i64, config.max_non_split_rounding, (int64_t)60 << 20));
}

/* As torch 2.11 fills its table: measured on the virtual GPU, size by size. */
Test(allocator_config, division_lists_fill_the_intervals)
{
    static const int64_t named[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8};
    static const int64_t backwards[16] = {8, 2, 2};
    struct plim_allocator_config a =
        parsed("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
    struct plim_allocator_config b = parsed("roundup_power2_divisions:[4:2,1:8,]");
    struct plim_allocator_config c = parsed("roundup_power2_divisions:[131072:4,>:8]");
    for (int i = 0; i < 16; i++) {
        cr_expect(eq(i64, a.roundup_power2_divisions[i], named[i]), "interval %d", i);
        cr_expect(eq(i64, b.roundup_power2_divisions[i], backwards[i]), "interval %d", i);
        cr_expect(eq(i64, c.roundup_power2_divisions[i], 4), "interval %d", i);
    }
}

Test(allocator_config, a_whole_device_is_no_limit_and_none_of_it_is_one)
{
    cr_expect(eq(dbl, parsed("per_process_memory_fraction:1.0").memory_fraction, 0));
    cr_expect(lt(dbl, 0, parsed("per_process_memory_fraction:0").memory_fraction));
}

struct refused {
    char text[64];
    char message[128];
};

static struct refused refused[] = {
    {"max_split_size:128", "unknown allocator option 'max_split_size'; did you mean "
                           "'max_split_size_mb'?"},
    {"expandable_segment:True", "unknown allocator option 'expandable_segment'; did you mean "
                                "'expandable_segments'?"},
    {"zzzzzzzzzz:1", "unknown allocator option 'zzzzzzzzzz'"},
    {"expandable_segments:true", "allocator option expandable_segments: expected True or False, "
                                 "not 'true'"},
    {"expandable_segments", "allocator option expandable_segments: expected ':' at the end"},
    {"expandable_segments:True,,", "unknown allocator option ','"},
    {"max_split_size_mb:19", "allocator option max_split_size_mb: 19 is less than "
                             "large_segment_size_mb, 20"},
    {"max_split_size_mb:25,large_segment_size_mb:30",
     "allocator option max_split_size_mb: 25 is less than large_segment_size_mb, 30"},
    {"max_non_split_rounding_mb:19", "allocator option max_non_split_rounding_mb: 19 is less than "
                                     "large_segment_size_mb, 20"},
    {"large_segment_size_mb:10", "allocator option large_segment_size_mb: expected more than 10 "
                                 "MiB, not '10'"},
    {"max_split_size_mb:-1", "allocator option max_split_size_mb: expected a positive number of "
                             "MiB, not '-1'"},
    {"max_split_size_mb:99999999999999999999",
     "allocator option max_split_size_mb: expected a positive number of MiB, not "
     "'99999999999999999999'"},
    {"max_split_size_mb:", "allocator option max_split_size_mb: expected a positive number of MiB "
                           "at the end"},
    {"max_split_size_mb:40:max_non_split_rounding_mb:40",
     "allocator option max_split_size_mb: expected ',', not ':'"},
    {"garbage_collection_threshold:1", "allocator option garbage_collection_threshold: expected a "
                                       "number between 0 and 1, not '1'"},
    {"garbage_collection_threshold:nan", "allocator option garbage_collection_threshold: expected "
                                         "a number between 0 and 1, not 'nan'"},
    {"per_process_memory_fraction:1.5", "allocator option per_process_memory_fraction: expected a "
                                        "number from 0 to 1, not '1.5'"},
    {"roundup_power2_divisions:3", "allocator option roundup_power2_divisions: expected a power "
                                   "of two or a list [size:divisions,...], not '3'"},
    {"roundup_power2_divisions:[300:1]", "allocator option roundup_power2_divisions: expected a "
                                         "power of two (in MiB) or '>', not '300'"},
    {"roundup_power2_divisions:[256:3]", "allocator option roundup_power2_divisions: expected a "
                                         "power of two or 0, not '3'"},
    {"roundup_power2_divisions:[256:1", "allocator option roundup_power2_divisions: expected ',' "
                                        "or ']' at the end"},
    {"backend:foo", "allocator option backend: expected native, not 'foo'"},
};

ParameterizedTestParameters(allocator_config, refuses)
{
    return cr_make_param_array(struct refused, refused, sizeof(refused) / sizeof(refused[0]));
}

ParameterizedTest(struct refused *what, allocator_config, refuses)
{
    struct plim_allocator_config config;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_expect(eq(int, plim_allocator_config_parse(what->text, &config, &err), PLIM_INVALID));
    cr_expect(eq(str, err.text, what->message));
    cr_expect(eq(i64, config.max_split_size, INT64_MAX)); /* the defaults, not half of the text */
}

Test(allocator_config, the_asynchronous_backend_is_not_modelled)
{
    struct plim_allocator_config config;
    cr_expect(eq(int, plim_allocator_config_parse("backend:cudaMallocAsync", &config, NULL),
                 PLIM_UNSUPPORTED));
}

Test(allocator_config, a_very_long_text_is_refused)
{
    char text[4096];
    struct plim_allocator_config config;
    memset(text, ',', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    cr_expect(eq(int, plim_allocator_config_parse(text, &config, NULL), PLIM_INVALID));
}
