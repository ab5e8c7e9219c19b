/* Detections: decoding, suppression against its definition, and boxes in pixels of the image. */
#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

#include "core/text.h"
#include "core/xalloc.h"
#include "support/rng.h"
#include "workloads/vision.h"
#include "workloads/labels.h"

static void add(struct found_boxes *list, struct found_box item)
{
    *XADD(list->items, list->count, list->capacity) = item;
}

/* ---- suppression ---- */

/* Cells of a grid that both boxes cover over those that one of them covers: boxes have integer corners. */
static double overlap_by_cells(const struct found_box *a, const struct found_box *b)
{
    int both = 0, either = 0;
    for (int y = 0; y < 24; y++)
        for (int x = 0; x < 24; x++) {
            bool in_a = x >= a->left && x < a->right && y >= a->top && y < a->bottom;
            bool in_b = x >= b->left && x < b->right && y >= b->top && y < b->bottom;
            both += in_a && in_b;
            either += in_a || in_b;
        }
    return either ? (double)both / either : 0;
}

/* The definition: the most probable box that is left stays, and removes those that overlap it; again. */
static size_t suppress_by_definition(const struct found_boxes *list, double iou, size_t max,
                                     struct found_box *stay)
{
    bool *is_left = xmalloc(list->count * sizeof *is_left);
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        is_left[i] = true;
    while (count < max) {
        size_t best = list->count;
        for (size_t i = 0; i < list->count; i++)
            if (is_left[i] &&
                (best == list->count || list->items[i].score > list->items[best].score))
                best = i;
        if (best == list->count)
            break;
        stay[count++] = list->items[best];
        is_left[best] = false;
        for (size_t i = 0; i < list->count; i++)
            if (list->items[i].label == list->items[best].label &&
                overlap_by_cells(&list->items[i], &list->items[best]) > iou)
                is_left[i] = false;
    }
    free(is_left);
    return count;
}

static uint64_t below(uint64_t *rng, uint64_t end)
{
    return rng_bits(rng) % end;
}

static struct found_box random_box(uint64_t *rng)
{
    float left = (float)below(rng, 20), top = (float)below(rng, 20);
    return (struct found_box){
        .left = left,
        .top = top,
        .right = left + 1 + (float)below(rng, (uint64_t)(23 - left)),
        .bottom = top + 1 + (float)below(rng, (uint64_t)(23 - top)),
        .score = (float)below(rng, 30) / 30, /* some are equal */
        .label = (uint32_t)below(rng, 3),
    };
}

static void suppression_follows_its_definition(void **state)
{
    (void)state;
    uint64_t rng = 5;
    int suppressed = 0;
    for (int round = 0; round < test_rounds(300); round++) {
        struct found_boxes list = {0};
        struct found_box expected[60];
        double iou = (double)below(&rng, 20) / 20;
        size_t max = below(&rng, 4) ? 60 : 1 + below(&rng, 5), count = below(&rng, 60);
        for (size_t i = 0; i < count; i++)
            add(&list, random_box(&rng));
        size_t kept = suppress_by_definition(&list, iou, max, expected);
        found_boxes_suppress(&list, iou, max);
        assert_int_equal(list.count, kept);
        for (size_t i = 0; i < kept; i++)
            assert_memory_equal(&list.items[i], &expected[i], sizeof expected[i]);
        suppressed += (int)(count - kept);
        found_boxes_release(&list);
    }
    assert_true(suppressed > 100);
}

static void an_overlap_equal_to_the_limit_stays(void **state)
{
    (void)state;
    struct found_boxes list = {0};
    add(&list, (struct found_box){0, 0, 4, 4, 0.9F, 0});
    add(&list, (struct found_box){0, 0, 4, 2, 0.8F, 0}); /* IoU 0.5 */
    found_boxes_suppress(&list, 0.5, 300);
    assert_int_equal(list.count, 2);
    found_boxes_suppress(&list, 0.49, 300);
    assert_int_equal(list.count, 1);
    found_boxes_release(&list);
}

static void empty_and_inverted_boxes_are_harmless(void **state)
{
    (void)state;
    struct found_boxes list = {0};
    found_boxes_suppress(&list, 0.5, 300);
    found_boxes_limit(&list, 300);
    assert_int_equal(list.count, 0);
    add(&list, (struct found_box){3, 3, 3, 3, 0.9F, 0});
    add(&list, (struct found_box){3, 3, 3, 3, 0.8F, 0});
    add(&list, (struct found_box){5, 5, 2, 2, 0.7F, 0});
    found_boxes_suppress(&list, 0.5, 300);
    assert_int_equal(list.count, 3);
    found_boxes_release(&list);
}

/* ---- decoding ---- */

static void anchors_are_of_their_most_probable_class(void **state)
{
    (void)state;
    /* Three anchors, two classes: rows of x, y, width, height, and the scores. */
    static const float VALUES[] = {10, 20, 30, 11,   21,   31,    4,    8,    2,
                                   6,  2,  2,  0.3F, 0.1F, 0.25F, 0.2F, 0.9F, 0.25F};
    struct found_boxes list = {0};
    found_boxes_add_anchors(&list, VALUES, 2, 3, 0.25);
    assert_int_equal(list.count, 2); /* a score equal to the confidence is too low */
    const struct found_box *a = &list.items[0], *b = &list.items[1];
    assert_int_equal(a->label, 0);
    assert_int_equal(b->label, 1);
    assert_true(a->left == 8 && a->top == 8 && a->right == 12 && a->bottom == 14);
    assert_true(b->left == 16 && b->top == 20 && b->right == 24 && b->bottom == 22);
    assert_true(a->score == 0.3F && b->score == 0.9F);
    found_boxes_release(&list);
}

static void objects_with_an_impossible_class_are_dropped(void **state)
{
    (void)state;
    static const float VALUES[] = {1, 2, 3, 4, 0.5F, 7,     1, 2, 3, 4, 0.5F, -1,
                                   1, 2, 3, 4, 0.5F, 1e30F, 1, 2, 3, 4, 0.1F, 0};
    struct found_boxes list = {0};
    found_boxes_add_objects(&list, VALUES, 4, 0.25);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].label, 7);
    found_boxes_release(&list);
}

/* ---- the image ---- */

static void boxes_return_to_the_image(void **state)
{
    (void)state;
    /* 200 x 100 in a square of 64: a scale of 0.32, 16 rows above and below. */
    struct found_boxes list = {0};
    struct labels labels = {0};
    struct text answer = {0};
    add(&list, (struct found_box){3.2F, 19.2F, 32, 48, 0.5F, 3});
    add(&list, (struct found_box){-5, 0, 70, 64, 0.25F, 0});
    found_boxes_unletterbox(&list, 0.32, 0, 16, 200, 100);
    found_boxes_answer(&list, &labels, &answer);
    assert_string_equal(text_get(&answer),
                        "[{\"label\":\"3\",\"score\":0.5,\"box\":[10,10,90,90]},"
                        "{\"label\":\"0\",\"score\":0.25,\"box\":[0,0,200,100]}]");
    text_release(&answer);
    found_boxes_release(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suppression_follows_its_definition),
        cmocka_unit_test(an_overlap_equal_to_the_limit_stays),
        cmocka_unit_test(empty_and_inverted_boxes_are_harmless),
        cmocka_unit_test(anchors_are_of_their_most_probable_class),
        cmocka_unit_test(objects_with_an_impossible_class_are_dropped),
        cmocka_unit_test(boxes_return_to_the_image),
    };
    return RUN_TESTS(tests);
}
