#include "estimate/certainty.h"

#include <math.h>

#include "core/text.h"

/* Relative errors that no figure of the device has: of the model where it was fitted to this device and
 * where it was not, of a node whose operator is not known, of a graph whose shapes were assumed. */
#define MODEL_CALIBRATED 0.10
#define MODEL_THEORETIC  0.25
#define NODE_UNKNOWN     1.0
#define GRAPH_GUESSED    0.3

static double square(double x)
{
    return x * x;
}

struct certainty_shares certainty_shares(const struct subgraph *subgraph,
                                         const struct subgraph_estimate *row)
{
    struct certainty_shares shares = {0};
    if (row->stretch > 1) {
        shares.limit_s = row->latency_s;
    } else {
        *(row->compute_s > row->memory_s ? &shares.compute_s : &shares.memory_s) =
            fmax(row->compute_s, row->memory_s);
        shares.launch_s = row->launch_s;
        shares.link_s = row->link_s;
    }
    if (subgraph->op == GRAPH_UNKNOWN) {
        shares.unknown_s = row->latency_s;
        shares.unknown_j = row->joules.total;
    }
    return shares;
}

/* A value of one device counts as much as the row of it that decides; two that are multiplied add their
 * squares. */
static double both(struct rate a, struct rate b)
{
    return sqrt(square(a.relative) + square(b.relative));
}

/* What the graph and the model add, beside the figures of the device. */
static double of_graph(const struct pass_estimate *estimate, double all, double of_unknown)
{
    double model = estimate->hardware->is_calibrated ? MODEL_CALIBRATED : MODEL_THEORETIC;
    double guessed = estimate->partition->graph->is_guessed ? GRAPH_GUESSED : 0;
    return square(model * all) + square(guessed * all) + square(NODE_UNKNOWN * of_unknown);
}

static void set_plus_minus(const struct rates *rates, const struct certainty_shares *shares,
                           struct pass_estimate *estimate)
{
    const struct estimate_joules *joules = &estimate->joules;
    double moving = joules->compute + joules->memory + joules->link;
    double of_moving = square(joules->compute * rates->product_joules.relative) +
                       square((joules->memory + joules->link) * rates->joules_per_byte.relative) +
                       of_graph(estimate, moving, shares->unknown_j);
    double of_time = square(shares->compute_s * both(rates->product_flops, rates->compute_share)) +
                     square(shares->memory_s * both(rates->bytes_per_s, rates->memory_share)) +
                     square(shares->launch_s * rates->launch_s.relative) +
                     square(shares->link_s * both(rates->link_bytes_per_s, rates->link_latency_s)) +
                     of_graph(estimate, estimate->latency_s, shares->unknown_s);
    if (shares->limit_s > 0 && moving > 0) /* time is joules over what the limit leaves */
        of_time += square(shares->limit_s) * of_moving / square(moving);
    double time = estimate->latency_s, relative_time = time > 0 ? of_time / square(time) : 0;
    double of_idle = square(joules->idle) * (square(rates->idle_w.relative) + relative_time);
    estimate->latency_plus_minus = sqrt(of_time);
    estimate->joules_plus_minus = sqrt(of_moving + of_idle);
    /* Where the limit decides, power is the limit and as sure as that. */
    double limited = time > 0 ? shares->limit_s / time : 0;
    double of_power =
        square(joules->idle * rates->idle_w.relative) + of_moving + square(moving) * relative_time;
    double of_limit = limited > 0 ? square(limited * joules->total * rates->limit_w.relative) : 0;
    estimate->power_plus_minus =
        time > 0 ? sqrt(square(1 - limited) * of_power + of_limit) / time : UNKNOWN;
}

/* How well the device is known, and what makes it no better. */
static enum estimate_confidence of_device(const struct pass_estimate *estimate, char *reason,
                                          size_t room)
{
    const struct hardware *hardware = estimate->hardware;
    struct hardware_weakest weakest = hardware_weakest(hardware, estimate->setting.precision);
    enum precision wanted = estimate->setting.precision, used;
    (void)hardware_product_flops(hardware, wanted, &used);
    /* Peaks are published even where all that is left to measure was measured. */
    bool is_measured = weakest.evidence <= EVIDENCE_PUBLISHED && used == wanted;
    if (hardware->is_calibrated && is_measured)
        str_format(reason, room, "%s was calibrated by measurement%s", hardware->id,
                   is_known(hardware->limit_w.value) ? "" : "; it states no power limit to hold");
    else if (hardware->is_calibrated && used != wanted)
        str_format(reason, room, "%s was calibrated, but not in %s", hardware->id,
                   precision_name(wanted));
    else if (hardware->is_calibrated)
        str_format(reason, room, "%s was calibrated, but not %s: %s", hardware->id, weakest.figure,
                   weakest.is_stated ? evidence_name(weakest.evidence) : "not stated");
    else
        str_format(reason, room, "some figures of %s are %s", hardware->id,
                   evidence_name(weakest.evidence));
    return hardware->is_calibrated && is_measured   ? CONFIDENCE_CALIBRATED
           : hardware->is_calibrated || is_measured ? CONFIDENCE_INTERPOLATED
                                                    : CONFIDENCE_THEORETICAL;
}

static void set_confidence(struct pass_estimate *estimate)
{
    const struct graph *graph = estimate->partition->graph;
    const struct hardware *hardware = estimate->hardware;
    char *reason = estimate->confidence_reason;
    size_t room = sizeof estimate->confidence_reason;
    estimate->confidence = of_device(estimate, reason, room);
    if (!graph->is_guessed && graph->unknown_count == 0 && !hardware->doubt[0])
        return;
    if (estimate->confidence < CONFIDENCE_THEORETICAL)
        estimate->confidence++;
    if (graph->is_guessed)
        str_copy(reason, room, "the file does not state all shapes: some are assumed");
    else if (graph->unknown_count)
        str_format(reason, room, "%zu node%s of no known operator", graph->unknown_count,
                   graph->unknown_count == 1 ? " is" : "s are");
    else
        str_format(reason, room, "what is said of the device contradicts itself: %s",
                   hardware->doubt);
}

void certainty_of(const struct rates *rates, const struct certainty_shares *shares,
                  struct pass_estimate *estimate)
{
    set_plus_minus(rates, shares, estimate);
    set_confidence(estimate);
}
