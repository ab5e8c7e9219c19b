#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "live/live.h"
#include "live/reading.h"
#include "report/text/format.h"
#include "sensors/sensor.h"

/* ---- a fake machine ---- */

enum { DEVICES_MAX = 24 };

static const struct sensor_driver DRIVER = {.name = "scripted"};

struct machine {
    struct sensor sensors[DEVICES_MAX];
    struct reading reading;
    struct live live;
};

static struct energy make_energy(double joules, enum method method)
{
    struct energy energy = energy_unknown("it is dead");
    if (method == METHOD_NONE)
        return energy;
    energy.note[0] = '\0';
    energy.method = method;
    energy.joules = joules;
    energy.plus_minus = joules / 50;
    energy.coverage = 1;
    return energy;
}

static void machine_init(struct machine *machine, size_t count)
{
    *machine = (struct machine){0};
    struct reading *reading = &machine->reading;
    reading->interval_s = 1;
    reading->elapsed_s = 12;
    reading->now.total = reading->since.total = energy_unknown("nothing");
    reading->now.devices = calloc(count + 1, sizeof *reading->now.devices);
    reading->since.devices = calloc(count + 1, sizeof *reading->since.devices);
    reading->lost = calloc(count + 1, sizeof *reading->lost);
    reading->now.count = reading->since.count = count;
    for (size_t i = 0; i < count; i++) {
        struct sensor *sensor = &machine->sensors[i];
        sensor->driver = &DRIVER;
        str_copy(sensor->name, sizeof sensor->name, "Device with a rather long name, model 9000");
        struct ledger_device device = {
            .sensor = sensor, .power_mean = UNKNOWN, .power_max = UNKNOWN};
        device.energy = energy_unknown("no sensor measures its energy");
        str_format(device.id, sizeof device.id, "gpu%zu", i);
        reading->now.devices[i] = reading->since.devices[i] = device;
    }
    live_init(&machine->live, count);
}

static void machine_release(struct machine *machine)
{
    reading_release(&machine->reading);
    live_release(&machine->live);
}

static void set_energy(struct machine *machine, size_t i, double watts, enum method method)
{
    struct ledger_device *now = &machine->reading.now.devices[i];
    struct ledger_device *since = &machine->reading.since.devices[i];
    now->has_energy = since->has_energy = true;
    now->counted = since->counted = method != METHOD_NONE;
    now->energy = make_energy(watts, method);
    since->energy = make_energy(watts * 12, method);
    now->power_mean = since->power_mean = now->power_max = since->power_max =
        method == METHOD_NONE ? UNKNOWN : watts;
    machine->reading.now.total = now->energy;
    machine->reading.since.total = since->energy;
}

static void set_gauge(struct machine *machine, size_t i, enum quantity quantity, double value)
{
    machine->reading.now.devices[i].gauges[quantity] =
        (struct ledger_gauge){true, value, value, value};
}

static void set_all_gauges(struct machine *machine, size_t i)
{
    set_gauge(machine, i, QTY_UTILIZATION, 53);
    set_gauge(machine, i, QTY_MEMORY_USED, 12.3 * (1 << 30));
    set_gauge(machine, i, QTY_MEMORY_TOTAL, 139.8 * (1 << 30));
    set_gauge(machine, i, QTY_TEMPERATURE, 63);
    set_gauge(machine, i, QTY_CLOCK, 1980);
    set_gauge(machine, i, QTY_MEMORY_CLOCK, 3201);
    set_gauge(machine, i, QTY_POWER_LIMIT, 700);
    set_gauge(machine, i, QTY_THROTTLE, THROTTLE_POWER | THROTTLE_THERMAL);
}

static struct live_view view_of(const struct machine *machine, unsigned columns, unsigned rows)
{
    return (struct live_view){.columns = columns,
                              .rows = rows,
                              .utf8 = true,
                              .shown = machine->live.pushed,
                              .every_s = 1,
                              .notice = ""};
}

/* ---- inspecting a frame ---- */

static void without_styles(const char *from, char *to)
{
    while (*from) {
        if (*from == '\033')
            from += strcspn(from, "m") + 1;
        else
            *to++ = *from++;
    }
    *to = '\0';
}

static char plain[1 << 18];

/* Renders, checks that it fits on the screen, and returns the text without styles. */
static const char *render(const struct machine *machine, const struct live_view *view)
{
    struct text out = {0};
    live_render(&machine->live, &machine->reading, view, &out);
    assert_false(out.failed);
    assert_true(out.length < sizeof plain);
    without_styles(text_get(&out), plain);
    text_release(&out);
    char line[4096];
    unsigned lines = 0;
    for (const char *at = plain;; at++) {
        size_t length = strcspn(at, "\n");
        assert_true(length < sizeof line);
        memcpy(line, at, length);
        line[length] = '\0';
        lines++;
        if (utf8_width(line) > view->columns) {
            print_error("%ux%u: '%s' is %zu wide\n", view->columns, view->rows, line,
                        utf8_width(line));
            fail();
        }
        at += length;
        if (!*at)
            break;
    }
    assert_true(lines <= view->rows);
    return plain;
}

static void expect_in(const char *frame, const char *piece)
{
    if (!strstr(frame, piece)) {
        print_error("no '%s' in:\n%s\n", piece, frame);
        fail();
    }
}

static void expect_not_in(const char *frame, const char *piece)
{
    if (strstr(frame, piece)) {
        print_error("'%s' in:\n%s\n", piece, frame);
        fail();
    }
}

/* ---- the tests ---- */

/* With wide figures and a full history. */
static void fill(struct machine *machine, size_t count)
{
    static const enum method METHODS[] = {METHOD_COUNTER, METHOD_ESTIMATED, METHOD_NONE};
    machine_init(machine, count);
    for (size_t i = 0; i < count; i++) {
        set_energy(machine, i, 123456.789, METHODS[i % 3]);
        set_all_gauges(machine, i);
        machine->reading.lost[i] = i == 4;
    }
    for (int i = 0; i < 700; i++)
        live_push(&machine->live, &machine->reading);
}

static void no_frame_exceeds_the_screen(void **state)
{
    (void)state;
    static const size_t COUNTS[] = {1, 3, 8, DEVICES_MAX};
    static struct top busy = {.count = TOP_MAX, .cpu_watts = 1e9};
    for (size_t i = 0; i < TOP_MAX; i++)
        busy.rows[i] = (struct top_row){.pid = 4194304,
                                        .device = "a device of length 22",
                                        .name = "fifteen letters",
                                        .share = 1,
                                        .watts = 123456.789,
                                        .joules = 1e12};
    /* Sanitizers check bounds at every width and at every height, but not at every pair of them; valgrind would need a
     * quarter of a minute. */
    const unsigned step = getenv("IPW_SLOW") ? 7 : 1, taller = test_is_instrumented() ? 5 : 1;
    for (size_t c = 0; c < sizeof COUNTS / sizeof *COUNTS; c++) {
        struct machine machine;
        fill(&machine, COUNTS[c]);
        for (unsigned columns = 1; columns <= 600; columns += columns < 130 ? step : 67)
            for (unsigned rows = 1 + columns % taller; rows <= 60; rows += rows < 26 ? taller : 8) {
                struct live_view view = view_of(&machine, columns, rows);
                view.utf8 = columns % 2;
                view.color = rows % 2;
                view.paused = columns % 3 == 0;
                view.help = columns % 5 == 0;
                view.first = columns;
                view.top = rows % 2 ? &busy : NULL;
                view.notice = rows % 3 ? "" : "nvml:0: device lost; trying to reopen it";
                render(&machine, &view);
            }
        machine_release(&machine);
    }
}

static void a_device_shows_all_its_gauges(void **state)
{
    (void)state;
    struct machine machine;
    machine_init(&machine, 1);
    set_energy(&machine, 0, 412.34, METHOD_COUNTER);
    set_all_gauges(&machine, 0);
    live_push(&machine.live, &machine.reading);
    struct live_view view = view_of(&machine, 110, 24);
    const char *frame = render(&machine, &view);
    static const char *const PIECES[] = {
        "gpu0  Device with",
        "412.3 W",
        "4.948 ± 0.099 kJ",
        "counter",
        "53 %",
        "12.3/139.8 GiB",
        "63 °C",
        "1980 MHz",
        "limit 700 W",
        "throttled: power thermal",
        "500 W",
        "q quit",
        "12 s · every 1 s",
    };
    for (size_t i = 0; i < sizeof PIECES / sizeof *PIECES; i++)
        expect_in(frame, PIECES[i]);
    expect_not_in(frame, "total"); /* with one device there is no total */
    machine_release(&machine);
}

static void unknown_is_a_dash_and_never_zero(void **state)
{
    (void)state;
    struct machine machine;
    machine_init(&machine, 2);
    set_energy(&machine, 1, 100, METHOD_COUNTER);
    set_energy(&machine, 0, 100, METHOD_NONE);
    set_gauge(&machine, 0, QTY_UTILIZATION, UNKNOWN);
    set_gauge(&machine, 0, QTY_TEMPERATURE, UNKNOWN);
    live_push(&machine.live, &machine.reading);
    struct live_view view = view_of(&machine, 90, 30);
    const char *frame = render(&machine, &view);
    expect_in(frame, "it is dead");
    expect_in(frame, "util -");
    expect_in(frame, "temp -");
    expect_not_in(frame, " 0 %");
    view = view_of(&machine, 60, 5);
    frame = render(&machine, &view);
    expect_in(frame, "gpu0           -          -");
    machine_release(&machine);
}

static void estimates_and_lost_devices_are_marked(void **state)
{
    (void)state;
    struct machine machine;
    machine_init(&machine, 2);
    set_energy(&machine, 0, 57.58, METHOD_ESTIMATED);
    set_energy(&machine, 1, 100, METHOD_COUNTER);
    machine.reading.lost[1] = true;
    machine.reading.since.devices[0].counted = false;
    str_copy(machine.reading.since.total.note, sizeof machine.reading.since.total.note,
             "without gpu7: it is dead");
    for (unsigned rows = 6; rows <= 30; rows += 24) {
        struct live_view view = view_of(&machine, 90, rows);
        const char *frame = render(&machine, &view);
        expect_in(frame, "~58 W");
        expect_in(frame, "estimated");
        expect_in(frame, "LOST");
        if (rows == 30) {
            expect_in(frame, "estimated, not in total");
            expect_in(frame, "without gpu7");
        }
    }
    machine_release(&machine);
}

/* Number of lines of the frame that contain the text. */
static unsigned count_lines(const char *frame, const char *piece)
{
    unsigned lines = 0;
    for (const char *at = frame; (at = strstr(at, piece)); lines++)
        at += strcspn(at, "\n");
    return lines;
}

/* Its offset in the frame; fails where it is missing. */
static size_t find_offset(const char *frame, const char *piece)
{
    expect_in(frame, piece);
    return (size_t)(strstr(frame, piece) - frame);
}

static void a_tall_screen_has_tall_graphs_with_a_time_axis(void **state)
{
    (void)state;
    static const struct {
        unsigned columns, rows, min, max; /* rows of both graphs together */
    } CASES[] = {{200, 60, 40, 48}, {80, 24, 8, 12}, {80, 12, 0, 2}, {40, 10, 0, 2}};
    struct machine machine;
    machine_init(&machine, 2);
    set_energy(&machine, 0, 100, METHOD_COUNTER);
    set_energy(&machine, 1, 100, METHOD_COUNTER);
    for (int i = 0; i < 400; i++)
        live_push(&machine.live, &machine.reading);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct live_view view = view_of(&machine, CASES[i].columns, CASES[i].rows);
        const char *frame = render(&machine, &view);
        unsigned rows = count_lines(frame, "████");
        assert_in_range(rows, CASES[i].min, CASES[i].max);
        assert_int_equal(count_lines(frame, "now"), CASES[i].rows >= 24 ? 2 : 0);
        if (CASES[i].rows < 24)
            continue;
        expect_in(frame, "╵-15 s");
        if (CASES[i].columns == 200)
            expect_in(frame, "╵-150 s");
        /* The label is below the column of its time. */
        const char *label = strstr(frame, "╵-15 s"), *now = strstr(label, "now");
        char between[200] = "";
        memcpy(between, label, (size_t)(now - label));
        assert_int_equal(utf8_width(between), 15 - 2);
    }
    struct live_view slow = view_of(&machine, 200, 60);
    slow.every_s = 60;
    expect_in(render(&machine, &slow), "╵-15 min");
    machine_release(&machine);
}

static void dead_devices_come_last_with_the_reason(void **state)
{
    (void)state;
    struct machine machine;
    machine_init(&machine, 3);
    set_energy(&machine, 1, 100, METHOD_COUNTER);
    set_energy(&machine, 2, 100, METHOD_COUNTER);
    set_energy(&machine, 0, 100, METHOD_NONE);
    for (unsigned rows = 8; rows <= 60; rows += 26) {
        struct live_view view = view_of(&machine, 100, rows);
        const char *frame = render(&machine, &view);
        assert_true(find_offset(frame, "gpu0") > find_offset(frame, "gpu2"));
        if (rows > 8)
            expect_in(frame, "model 9000: it is dead");
    }
    struct live_view view = view_of(&machine, 100, 40);
    struct text out = {0};
    view.color = true;
    live_render(&machine.live, &machine.reading, &view, &out);
    expect_in(text_get(&out), "\033[2mgpu0");
    expect_in(text_get(&out), "\033[2mit is dead");
    text_release(&out);
    machine_release(&machine);
}

static void processes_are_shown_if_there_is_space(void **state)
{
    (void)state;
    struct machine machine;
    machine_init(&machine, 1);
    set_energy(&machine, 0, 40, METHOD_COUNTER);
    struct top top = {.count = 2, .cpu_watts = 40};
    top.rows[0] = (struct top_row){.pid = 4711,
                                   .device = "cpu",
                                   .name = "\033[2Jllama",
                                   .share = 0.5,
                                   .watts = 20,
                                   .joules = 9};
    top.rows[1] = (struct top_row){.pid = 12,
                                   .device = "gpu0",
                                   .name = "train",
                                   .share = 0.25,
                                   .watts = UNKNOWN,
                                   .joules = UNKNOWN,
                                   .is_estimated = true};
    struct live_view view = view_of(&machine, 100, 50);
    view.top = &top;
    const char *frame = render(&machine, &view);
    expect_in(frame, "attributed by their share of the device's time");
    expect_in(frame, "     4711  cpu    50.0 %    20.00 W    9.000 J  \\x1b[2Jllama");
    expect_in(frame, "       12  gpu0   25.0 %          -          -  train");
    expect_in(frame, "           cpu    50.0 %    20.00 W          -  idle, others");
    view.rows = 24;
    expect_not_in(render(&machine, &view), "attributed");
    view.rows = 50;
    view.columns = 50;
    expect_not_in(render(&machine, &view), "attributed");
    machine_release(&machine);
}

static void a_paused_view_does_not_change(void **state)
{
    (void)state;
    struct machine machine;
    machine_init(&machine, 1);
    for (int i = 1; i <= 8; i++) {
        set_energy(&machine, 0, i, METHOD_COUNTER);
        live_push(&machine.live, &machine.reading);
    }
    struct live_view view = view_of(&machine, 80, 6);
    view.paused = true;
    const char *frame = render(&machine, &view);
    expect_in(frame, "PAUSED");
    expect_in(frame, "▁▂▃▄▅▆▇█ 0–8 W");
    set_energy(&machine, 0, 8, METHOD_COUNTER);
    live_push(&machine.live, &machine.reading);
    expect_in(render(&machine, &view), "▁▂▃▄▅▆▇█ 0–8 W");
    view.shown = machine.live.pushed;
    expect_in(render(&machine, &view), "▁▂▃▄▅▆▇██ 0–8 W");
    /* Paused until the ring buffer has wrapped: what is lost is blank, not wrong. */
    view.shown = 8;
    for (int i = 0; i < LIVE_HISTORY - 4; i++)
        live_push(&machine.live, &machine.reading);
    expect_in(render(&machine, &view), "   ▆▇█ 0–8 W");
    machine_release(&machine);
}

static void many_devices_scroll(void **state)
{
    (void)state;
    struct machine machine;
    machine_init(&machine, DEVICES_MAX);
    for (size_t i = 0; i < DEVICES_MAX; i++)
        set_energy(&machine, i, 100, METHOD_COUNTER);
    struct live_view view = view_of(&machine, 80, 10);
    const char *frame = render(&machine, &view);
    expect_in(frame, "devices 1–7 of 24");
    expect_in(frame, "gpu6 ");
    expect_not_in(frame, "gpu7 ");
    view.first = 1000;
    struct text out = {0};
    assert_int_equal(live_render(&machine.live, &machine.reading, &view, &out), 17);
    text_release(&out);
    frame = render(&machine, &view);
    expect_in(frame, "devices 18–24 of 24");
    expect_in(frame, "gpu23 ");
    expect_in(frame, "total");
    machine_release(&machine);
}

static void ascii_mode_has_no_other_bytes_and_no_color_mode_no_escapes(void **state)
{
    (void)state;
    struct machine machine;
    machine_init(&machine, 2);
    set_energy(&machine, 0, 412.34, METHOD_COUNTER);
    set_energy(&machine, 1, 0.00001, METHOD_COUNTER);
    set_all_gauges(&machine, 0);
    str_copy(machine.sensors[0].name, sizeof machine.sensors[0].name, "Gerät\033[2J\xff");
    live_push(&machine.live, &machine.reading);
    for (int help = 0; help < 2; help++) {
        struct live_view view = view_of(&machine, 100, 30);
        struct text out = {0};
        view.utf8 = false;
        view.help = help;
        live_render(&machine.live, &machine.reading, &view, &out);
        for (size_t i = 0; i < out.length; i++)
            assert_true(out.bytes[i] == '\n' || (out.bytes[i] >= ' ' && out.bytes[i] < 0x7F));
        if (!help) {
            expect_in(text_get(&out), "Ger?t\\x1b[2J\\xff");
            expect_in(text_get(&out), "+-");
        }
        text_release(&out);
    }
    machine_release(&machine);
}

static void sparklines_distinguish_unknown_from_zero(void **state)
{
    (void)state;
    const float values[] = {0, (float)UNKNOWN, 50, 100};
    char cells[4 * SPARK_CELL + 1];
    spark_row(values, 4, 100, 0, 1, true, cells);
    assert_string_equal(cells, "▁ ▄█");
    spark_row(values, 4, 100, 0, 2, true, cells);
    assert_string_equal(cells, "   █");
    spark_row(values, 4, 100, 1, 2, true, cells);
    assert_string_equal(cells, "▁ ██");
    spark_row(values, 4, 100, 0, 1, false, cells);
    assert_string_equal(cells, "_ ~#");
    spark_meter(0.5, 4, true, cells);
    assert_string_equal(cells, "██░░");
    spark_meter(UNKNOWN, 4, false, cells);
    assert_string_equal(cells, "....");
    spark_meter(7, 4, false, cells);
    assert_string_equal(cells, "####");
}

static void the_scale_is_the_next_round_number(void **state)
{
    (void)state;
    static const struct {
        float max;
        double top;
    } CASES[] = {{0, 1},     {99.9f, 100},    {100, 100},  {101, 120},         {413, 500},
                 {700, 800}, {0.013f, 0.015}, {999, 1000}, {(float)UNKNOWN, 1}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_near(spark_top(&CASES[i].max, 1), CASES[i].top, CASES[i].top * 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_frame_exceeds_the_screen),
        cmocka_unit_test(a_device_shows_all_its_gauges),
        cmocka_unit_test(unknown_is_a_dash_and_never_zero),
        cmocka_unit_test(estimates_and_lost_devices_are_marked),
        cmocka_unit_test(a_tall_screen_has_tall_graphs_with_a_time_axis),
        cmocka_unit_test(dead_devices_come_last_with_the_reason),
        cmocka_unit_test(processes_are_shown_if_there_is_space),
        cmocka_unit_test(a_paused_view_does_not_change),
        cmocka_unit_test(many_devices_scroll),
        cmocka_unit_test(ascii_mode_has_no_other_bytes_and_no_color_mode_no_escapes),
        cmocka_unit_test(sparklines_distinguish_unknown_from_zero),
        cmocka_unit_test(the_scale_is_the_next_round_number),
    };
    return RUN_TESTS(tests);
}
