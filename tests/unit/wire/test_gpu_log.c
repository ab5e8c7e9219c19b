/* test: valgrind */
/* Logs of GPU profilers: which lines are rows, and the meaning of their cells. */
#include "support/unit.h"

#include <math.h>
#include <string.h>

#include "core/text.h"
#include "core/units.h"
#include "wire/gpu_log.h"

struct fed {
    struct gpu_log log;
    struct gpu_log_row row;
};

static enum gpu_log_line feed_line(struct fed *f, const char *text)
{
    char line[512];
    assert_true(str_copy(line, sizeof line, text));
    return gpu_log_line(&f->log, line, &f->row);
}

#define VALUE(f, name) ((f).row.values[GPU_LOG_##name])

static void test_a_dcgmi_table_is_parsed(void **state)
{
    (void)state;
    struct fed f = {0};
    assert_int_equal(feed_line(&f, "GPU 0     1.0   2.0"), GPU_LOG_OTHER); /* no header yet */
    assert_int_equal(feed_line(&f, "#Entity"), GPU_LOG_OTHER);             /* without columns */
    assert_int_equal(feed_line(&f, "GPU 0     1.0   2.0"), GPU_LOG_DAMAGED);
    assert_int_equal(
        feed_line(&f, "#Entity   DVNAM                  POWER   TOTEC    SMACT  GPUTL"),
        GPU_LOG_OTHER);
    assert_int_equal(feed_line(&f, "ID                               W       mJ"), GPU_LOG_OTHER);
    assert_int_equal(
        feed_line(&f, "GPU 3     NVIDIA  H100 80GB HBM3 312.5   5000     0.25   N/A  "),
        GPU_LOG_ROW);
    assert_int_equal(f.row.gpu, 3);
    assert_string_equal(f.log.gpu_name, "NVIDIA  H100 80GB HBM3");
    assert_true(VALUE(f, POWER_W) == 312.5 && VALUE(f, ENERGY_J) == 5 && VALUE(f, SM) == 0.25);
    assert_false(is_known(VALUE(f, UTILIZATION)) || is_known(VALUE(f, DRAM)) ||
                 is_known(f.row.time_s));
    assert_int_equal(feed_line(&f, "GPU 3     NVIDIA  H100 80GB HBM3 312.5   5000     0.25"),
                     GPU_LOG_DAMAGED); /* a row with a missing cell is not read as a shorter name */
    assert_int_equal(feed_line(&f, "Error: the host engine went away"), GPU_LOG_OTHER);
    assert_int_equal(feed_line(&f, "# a comment changes no columns"), GPU_LOG_OTHER);
    assert_int_equal(feed_line(&f, "GPU 3     NVIDIA H100 99.5   5000     0.25   50"), GPU_LOG_ROW);
    assert_true(VALUE(f, POWER_W) == 99.5);
    assert_int_equal(feed_line(&f, "# Entity  GPUTL  POWER"), GPU_LOG_OTHER); /* other columns */
    assert_int_equal(feed_line(&f, "     GPU 0     50     70.5"), GPU_LOG_ROW);
    assert_true(VALUE(f, UTILIZATION) == 0.5 && VALUE(f, POWER_W) == 70.5);
    assert_int_equal(feed_line(&f, "     GPU 0     50     -1"), GPU_LOG_ROW);
    assert_false(is_known(VALUE(f, POWER_W)));
}

/* Other variants of dcgmi: DCGM 3 and 4 align to the left with trailing spaces, DCGM 2 to the
 * right; MIG instances, virtual GPUs and switches have their own rows; long names are truncated;
 * missing texts have a placeholder. */
static void test_variants_of_dcgmi_tables_are_parsed(void **state)
{
    (void)state;
    static const char *const OTHERS[] = {
        "GPU-I 0   NVIDIA A100           99.000  1      0.900  ",
        "GPU-CI 0  NVIDIA A100           99.000  1      0.900  ",
        "vGPU 0    NVIDIA A100           99.000  1      0.900  ",
        "Switch 0  N/A                   N/A     N/A    N/A    ",
        "CPU 0     N/A                   99.000  1      0.900  ",
        "#Entity   DVNAM                 POWER   TOTEC  SMACT  ", /* after every 14 rows */
        "ID                              W       mJ            ",
        "",
        "dmon was stopped do to receiving a signal",
        "Error getting values information. Return -25: no data",
    };
    struct fed f = {0};
    assert_int_equal(feed_line(&f, "#Entity   DVNAM                 POWER   TOTEC  SMACT  "),
                     GPU_LOG_OTHER);
    assert_int_equal(feed_line(&f, "ID                              W       mJ            "),
                     GPU_LOG_OTHER);
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        assert_int_equal(feed_line(&f, "GPU 10    NVIDIA A100-SXM4-8... 312.500 7000   0.250  "),
                         GPU_LOG_ROW);
        assert_int_equal(f.row.gpu, 10);
        assert_string_equal(f.log.gpu_name, "NVIDIA A100-SXM4-8...");
        assert_true(VALUE(f, POWER_W) == 312.5 && VALUE(f, ENERGY_J) == 7 && VALUE(f, SM) == 0.25);
        assert_int_equal(feed_line(&f, OTHERS[i]), GPU_LOG_OTHER);
    }
    assert_int_equal(feed_line(&f, "GPU 0     <<<NULL>>>            312.500 700... 0.250  "),
                     GPU_LOG_ROW);
    assert_string_equal(f.log.gpu_name, "NVIDIA A100-SXM4-8...");
    assert_true(VALUE(f, POWER_W) == 312.5 && VALUE(f, SM) == 0.25);
    assert_false(is_known(VALUE(f, ENERGY_J)));
    assert_int_equal(feed_line(&f, "  # Entity  GRACT  SMACT  POWER"), GPU_LOG_OTHER);
    assert_int_equal(feed_line(&f, "        Id                    W"), GPU_LOG_OTHER);
    assert_int_equal(feed_line(&f, "   GPU-I 1  0.750  0.750    N/A"), GPU_LOG_OTHER);
    assert_int_equal(feed_line(&f, "     GPU 0  0.429    N/A  70.50"), GPU_LOG_ROW);
    assert_true(VALUE(f, GRAPHICS) == 0.429 && VALUE(f, POWER_W) == 70.5);
    assert_false(is_known(VALUE(f, SM)));
}

static void test_nvidia_smi_csv_is_parsed(void **state)
{
    (void)state;
    struct fed f = {0};
    assert_int_equal(feed_line(&f, "# made by a script"), GPU_LOG_OTHER);
    assert_int_equal(feed_line(&f, "timestamp, name, index, power.draw [W], clocks.sm [MHz], "
                                   "utilization.gpu [%], clocks.gr [MHz]\r"),
                     GPU_LOG_OTHER);
    assert_int_equal(
        feed_line(&f, "2024/03/01 00:00:01.500, Tesla V100, 2, 45.10 W, 1380 MHz, 7 %, 99 MHz\r"),
        GPU_LOG_ROW);
    assert_true(f.row.time_s == 1709251201.5); /* after a leap day */
    assert_int_equal(f.row.gpu, 2);
    assert_true(VALUE(f, POWER_W) == 45.1 && VALUE(f, CLOCK_MHZ) == 1380);
    assert_true(fabs(VALUE(f, UTILIZATION) - 0.07) < 1e-12);
    assert_int_equal(
        feed_line(&f, "2024/03/01 00:00:02.5, Tesla V100, 2, [N/A], [Not Supported], N/A, 99 MHz"),
        GPU_LOG_ROW);
    assert_false(is_known(VALUE(f, POWER_W)) || is_known(VALUE(f, CLOCK_MHZ)));
    assert_int_equal(feed_line(&f, "2024/03/01 00:00:03.5, Tesla V100, 2, 4"), GPU_LOG_DAMAGED);
    assert_int_equal(feed_line(&f, "2024/03/01 00:00:03.5, Tesla V100, 2, x, 1, 1, 1"),
                     GPU_LOG_DAMAGED);
    assert_int_equal(feed_line(&f, ""), GPU_LOG_OTHER);
}

static void test_log_formats_are_recognized(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_log;
    } CASES[] = {
        {"# Entity  POWER\n", true},
        {"\n#Entity   GPUTL  POWER\n", true},
        {"#Entity   GPUTL\n", false},
        {"timestamp, power.draw [W]\n", true},
        {"2025/07/08 15:27:53.949, 0, A, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, P0\n", true},
        {"2025/07/08 15:27:53.949, 0, A, 1\n", false},
        {"freq,power,saclk,timestamp,name\n", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_int_equal(gpu_log_is(CASES[i].text, strlen(CASES[i].text)), CASES[i].is_log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_dcgmi_table_is_parsed),
        cmocka_unit_test(test_variants_of_dcgmi_tables_are_parsed),
        cmocka_unit_test(test_nvidia_smi_csv_is_parsed),
        cmocka_unit_test(test_log_formats_are_recognized),
    };
    return RUN_TESTS(tests);
}
